"""What takes long in a real Airflow: all ways to ask for a line's windows, mended data, kills."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from support.airflow_cluster import Airflow, now
from support.airflow_data import write_torn_day
from support.airflow_endings import assert_ending, assert_last_lines, done, failed_at, nothing_to_do
from support.airflow_kill_story import TRAINING, KillStory
from support.airflow_pipelines import ADS, ADS_DAYS, NAN, TORN, WINDOW_SECONDS
from support.airflow_plugin import Timed
from support.airflow_truth import assert_exact, assert_in_order, generations, link, models, served
from support.file_watch import Reads, watched

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
BY_REST, BY_COMMAND, ALL = range(1, 3), range(3, 5), range(ADS_DAYS)
REST_LAST = BY_REST[-1]


@pytest.fixture(scope="module", autouse=True)
def started(airflow: Airflow) -> None:
    """The line's first window, and what needs no watching."""
    airflow.trigger(ADS, ADS.window(0))
    airflow.backfill(NAN, 0, 1)
    airflow.backfill(TORN, 0, 4)


@pytest.fixture(scope="module")
def backfilled(airflow: Airflow) -> Reads:
    """Windows 1 and 2 by REST with the API's defaults; which files were opened and read."""
    airflow.ended(ADS, {0: "success"}, WINDOW_SECONDS)
    with watched(airflow.project.root / "data" / "ads") as reads:
        airflow.backfill(ADS, BY_REST[0], BY_REST[-1])
        airflow.ended(ADS, dict.fromkeys(BY_REST, "success"), WINDOW_SECONDS)
    return reads


# One line: 0 is trained; 1 and 2 are backfilled by REST, 3 and 4 by command, 1 and 2 again --------


def test_a_backfill_by_rest(airflow: Airflow, timed: Timed, request: pytest.FixtureRequest) -> None:
    with timed("backfill of 2 windows by REST, its defaults"):
        reads: Reads = request.getfixturevalue("backfilled")
    for number in BY_REST:
        run = airflow.run_of(ADS, number)
        assert airflow.states(run) == done(ADS)
        expected = ADS.expected(airflow.project.root, number)
        assert airflow.result(run, "evaluate")["rows"] == {
            name: sums["rows"] for name, sums in expected.items()
        }
    assert_exact(airflow.project, ADS, range(REST_LAST + 1))
    assert_in_order(airflow.project, ADS, range(REST_LAST + 1))
    assert served(airflow.project, ADS) == (ADS.key(REST_LAST), 1)
    assert files_of(airflow, BY_REST) <= set(reads.opened)
    airflow.facts["calls"] = storage_calls(airflow, BY_REST)


def test_a_backfill_from_the_command_line(
    airflow: Airflow, backfilled: Reads, timed: Timed
) -> None:
    airflow.backfills_complete(ADS)
    first, last = (ADS.window(number).isoformat() for number in (BY_COMMAND[0], BY_COMMAND[-1]))
    with timed("backfill of 2 windows from the command line"):
        airflow.project.forebay(
            *("airflow", "backfill", "create", "--dag-id", ADS.name),
            *("--from-date", first, "--to-date", last),
        )
        runs = airflow.ended(ADS, dict.fromkeys(BY_COMMAND, "success"), WINDOW_SECONDS)
    assert [airflow.states(run) for run in runs.values()] == [done(ADS)] * len(BY_COMMAND)
    assert_exact(airflow.project, ADS, ALL)
    assert_in_order(airflow.project, ADS, ALL)


def test_the_same_range_again(airflow: Airflow, backfilled: Reads, timed: Timed) -> None:
    since = now()
    with (
        timed("the same 2 windows again, reprocess completed"),
        watched(airflow.project.root / "data" / "ads") as reads,
    ):
        airflow.backfill(ADS, BY_REST[0], BY_REST[-1], "completed")
        airflow.ended(ADS, dict.fromkeys(BY_REST, "success"), WINDOW_SECONDS, since)
    # Besides them, of each partition the newest planned segment, which says that the log is
    # the one it was: another one once the line has gone on.
    segments = Counter(
        path.rpartition("/")[0] for path in set(reads.opened) ^ set(backfilled.opened)
    )
    assert segments == {"clicks/0": 2, "clicks/1": 2}
    assert files_of(airflow, BY_REST) <= set(reads.opened)
    assert storage_calls(airflow, BY_REST) == airflow.facts["calls"]
    assert [generations(airflow.project, ADS, number) for number in BY_REST] == [[1, 2]] * 2
    assert link(airflow.project, ADS, 1)["parent"] == {"window": ADS.key(0), "generation": 1}
    assert_in_order(airflow.project, ADS, range(REST_LAST + 1))
    assert_exact(airflow.project, ADS, range(REST_LAST + 1))
    states = models(airflow.project, ADS)
    assert {key for key, state in states.items() if state == "replaced"} == {
        (ADS.key(number), 1) for number in BY_REST
    }
    first, last = (ADS.key(number) for number in BY_COMMAND)
    assert states[first, 1] == f"stale (built on generation 1 of {ADS.key(REST_LAST)})"
    assert states[last, 1].startswith("stale")
    assert served(airflow.project, ADS) == (last, 1), "it moved back"


def test_reprocess_none_reads_nothing(airflow: Airflow, backfilled: Reads, timed: Timed) -> None:
    before = {run.run_id: run for run in airflow.runs(ADS)}
    with (
        timed("all 5 windows again, reprocess none"),
        watched(airflow.project.root / "data" / "ads") as reads,
    ):
        airflow.backfill(ADS, ALL[0], ALL[-1])
        airflow.backfills_complete(ADS)
    after = {run.run_id: run for run in airflow.runs(ADS)}
    fresh = [after[run_id] for run_id in after.keys() - before.keys()]
    assert [airflow.states(run) for run in fresh] == [nothing_to_do(ADS)] * len(fresh)
    assert before.items() <= after.items()
    assert reads == Reads()


def test_clears(airflow: Airflow, backfilled: Reads, timed: Timed) -> None:
    number = ALL[-1]
    assert clear(airflow, timed, "clear of the sink alone", number, ["sink"]) == Reads()
    first, last = (ADS.key(number) for number in BY_COMMAND)
    why = airflow.project.forebay("why", ADS.name, last, "--output", "json")
    assert json.loads(why.stdout)["state"] == "stale", "the window counts as not done"
    kind = "clear of data_executors and what is behind it"
    reads = clear(airflow, timed, kind, number, ["data_executors"], downstream=True)
    assert set(reads.opened) == files_of(airflow, ALL[-1:]), "by the plan that was recorded"
    reads = clear(airflow, timed, "clear of a whole run", number, None)
    assert set(reads.opened) == files_of(airflow, ALL[-1:])
    assert reads.folders, "planned anew, too; footers are known"
    stale = {key for key, state in models(airflow.project, ADS).items() if "stale" in state}
    assert stale == {(first, 1), (last, 3)}


def clear(
    airflow: Airflow,
    timed: Timed,
    kind: str,
    number: int,
    tasks: list[str] | None,
    *,
    downstream: bool = False,
) -> Reads:
    since = now()
    run = airflow.run_of(ADS, number)
    with timed(kind), watched(airflow.project.root / "data" / "ads") as reads:
        airflow.api.clear(ADS.name, run.run_id, tasks, downstream)
        run = airflow.ended(ADS, {number: "success"}, WINDOW_SECONDS, since)[number]
    assert_ending(airflow, kind, ADS, run, number)
    assert_exact(airflow.project, ADS, [number])
    return reads


def files_of(airflow: Airflow, numbers: range) -> set[str]:
    """Files that hold rows of these windows, relative to the watched folder."""
    low, high = ADS.window(numbers[0]), ADS.window(numbers[-1] + 1)
    found = [stored.files(airflow.project.root, low, high) for stored in ADS.sources.values()]
    return {path.removeprefix("ads/") for path in set().union(*found)}


def storage_calls(airflow: Airflow, numbers: range) -> dict[str, int]:
    """Storage calls of all windows by source, as their tasks report them: of one scan each."""
    found = {}
    for name in ADS.sources:
        runs = [airflow.run_of(ADS, number) for number in numbers]
        results = [airflow.result(run, f"sources.{name}") for run in runs]
        scans = [each for each in results if each["storage_calls"]]
        assert [each["windows_scanned"] for each in scans] == [len(numbers)], results
        found[name] = int(scans[0]["storage_calls"])
    return found


def test_a_loss_that_is_not_a_number_is_red(airflow: Airflow) -> None:
    """With real towers; the window behind it is not trained without it."""
    runs = airflow.ended(NAN, dict.fromkeys((0, 1), "failed"), WINDOW_SECONDS)
    assert airflow.states(runs[0]) == failed_at(NAN, TRAINING)
    words = ("logs: ", "the loss of paradigm batch is not finite", NAN.key(0))
    assert_last_lines(airflow, runs[0], TRAINING, *words)
    assert airflow.states(runs[1]) == failed_at(NAN, "data_executors")
    assert_last_lines(airflow, runs[1], "data_executors", "comes before it, failed")
    assert [generations(airflow.project, NAN, number) for number in (0, 1)] == [[], []]


def test_mended_data_and_one_backfill_of_what_failed(airflow: Airflow, timed: Timed) -> None:
    airflow.ended(TORN, {0: "success", **dict.fromkeys(range(1, 5), "failed")}, WINDOW_SECONDS)
    for number in (1, 2):
        write_torn_day(airflow.project.root, number)
    with timed("backfill of 3 windows that had failed, once their data was mended"):
        since = now()
        airflow.backfill(TORN, 0, 3, "failed")
        runs = airflow.ended(TORN, dict.fromkeys(range(1, 4), "success"), WINDOW_SECONDS, since)
    assert all(airflow.states(run) == done(TORN) for run in runs.values())
    assert generations(airflow.project, TORN, 0) == [1], "the window that was trained was not to be"
    assert_exact(airflow.project, TORN, range(4))
    assert_in_order(airflow.project, TORN, range(4))
    assert served(airflow.project, TORN)[0] == TORN.key(3)


class TestKills(KillStory):
    """SIGKILL of an Airflow worker, the scheduler, the triggerer, a driver and a trainer."""
