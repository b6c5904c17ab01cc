"""What `forebay run` plans, has trained, publishes and concludes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import delete
from support.model_lines import export
from support.scripted_runs import FIRST, MODEL, SECOND, THIRD, Runs, reports, scripted_runs
from support.scripted_supervisor import ScriptedSupervisor
from support.stages import pipeline, replanned, table
from support.there import there

from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import ConfigError, DataError, InfrastructureError, NotReadyError, RowsLostError
from forebay.executors.evaluation.range_summary import summarise_windows
from forebay.executors.evaluation.run_summary import Summary
from forebay.executors.job.request import State
from forebay.executors.model_line.link import ReadRows
from forebay.executors.run import POLL_SECONDS, SUPERVISOR_RESTARTS_MAX
from forebay.executors.stages.why import why_window
from forebay.home.database.open import database_of
from forebay.home.database.tables import link_files
from forebay.system.output.error_report import ErrorReport

WARM_START = f"2026-02-27_{FIRST}"
KEYS = (FIRST, SECOND, THIRD)


def test_a_range_is_planned_trained_published_and_summed_up(runs: Runs) -> None:
    restarts = {"supervisor": 0, "driver": 0, "data": 1, "trainer": 0}

    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        runs.clock.steps.append(lambda: trains(supervisor))

    def trains(supervisor: ScriptedSupervisor) -> None:
        runs.clock.now += 7
        reports(supervisor, window=THIRD, phases_seconds={"steps": 1.23456})
        runs.trains(supervisor)
        supervisor.end("succeeded", restarts=restarts)

    summary, job = runs.run(FIRST, THIRD, starts), f"ads.main.{FIRST}..{THIRD}"
    assert runs.told.submitted == [job]
    (request,) = [each.request for each in runs.supervisors.started]
    assert runs.asked() == [(FIRST, 1), (SECOND, 1), (THIRD, 1)]
    assert (request.publishes, request.reprocess, request.line) == (True, False, "main")
    ((report, todo),) = runs.told.planned
    assert todo == runs.asked()
    assert [each.window for each in report.plans] == [FIRST, SECOND, THIRD]
    assert summary.trained_windows == [FIRST, SECOND, THIRD]
    assert (summary.reused_windows, summary.restarts) == ([], restarts)
    assert summary.storage_calls == report.storage_calls == 2
    assert summary.notes == []
    assert summary.rows_line.endswith("(9 = 9 = 9 + 0)")
    assert summary.published.window == THIRD
    job_seconds = POLL_SECONDS + 7
    assert summary.phases_seconds == {
        "plan": 0,
        "job": job_seconds,
        "evaluate": 0,
        "total": job_seconds,
        "trainer.steps": 1.235,
    }
    assert runs.serving() == (THIRD, 1)


def test_what_is_trained_is_summed_up_without_a_job(runs: Runs) -> None:
    runs.trained(0)
    runs.trained(1)
    summary = runs.run(FIRST, SECOND)
    assert runs.supervisors.started == []
    assert not runs.stages.home.jobs.exists()
    assert (summary.trained_windows, summary.reused_windows) == ([], [FIRST, SECOND])
    assert (summary.restarts, summary.storage_calls) == ({}, 0)
    assert list(summary.phases_seconds) == ["plan", "evaluate", "total"]
    assert (runs.stages.ledger.generations(FIRST), runs.told.planned[0][1]) == ([1], [])


def test_a_line_keeps_the_history_that_it_began_with(runs: Runs) -> None:
    def declare(warm_start: str) -> None:
        runs.stages.pipeline = pipeline(("a", "b"), model=MODEL, train={"warm_start": warm_start})

    declare("2026-02-27")
    runs.run(FIRST, FIRST, runs.succeeds)
    declare("2026-02-28")
    summary = runs.run(SECOND, SECOND, runs.succeeds)
    assert (summary.trained_windows, summary.warm_start.window) == ([SECOND], WARM_START)
    assert summary.stale_windows == []
    assert [note for note in summary.notes if f"keeps the warm start {WARM_START}" in note]
    other = runs.run(FIRST, FIRST, runs.succeeds, line="other")
    assert other.trained_windows == [f"2026-02-28_{FIRST}", FIRST]
    assert not [note for note in other.notes if "warm_start" in note]


@pytest.mark.parametrize(
    ("changed", "first", "last"),
    [
        ({"window": "1h"}, f"{FIRST}T05", f"{FIRST}T06"),
        ({"window": "1h", "start": "2026-02-28"}, "2026-02-28T22", f"{FIRST}T01"),
        ({"timezone": "Europe/Berlin"}, SECOND, THIRD),
        ({"timezone": "Europe/Berlin"}, FIRST, FIRST),
    ],
)
def test_overlaps_are_refused(runs: Runs, changed: dict[str, str], first: str, last: str) -> None:
    runs.trained(0)
    runs.stages.pipeline = pipeline(("a", "b"), model=MODEL, dataset=changed)
    with pytest.raises(ConfigError, match=rf"shares rows with window {FIRST} \("):
        runs.run(first, last)
    assert (runs.told.planned, runs.told.submitted) == ([], [])


def test_a_gap_is_refused_before_anything_is_planned(runs: Runs) -> None:
    runs.trained(0)
    with pytest.raises(ConfigError, match=f"window {SECOND} is not trained yet"):
        runs.run(THIRD)
    assert (runs.told.planned, runs.told.submitted) == ([], [])
    assert runs.stages.ledger.latest_plan(THIRD) is None


def test_a_changed_model_is_refused_before_anything_is_submitted(runs: Runs) -> None:
    runs.trained(0, model_fingerprint="another")
    with pytest.raises(ConfigError, match="features, label, model or sources changed"):
        runs.run(SECOND)
    assert (runs.told.planned, runs.told.submitted) == ([], [])


def test_a_reprocess_trains_what_is_trained_again_each_time(runs: Runs) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    for generation in (2, 3):
        summary = runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
        request = runs.supervisors.started[-1].request
        assert request.job_id == f"ads.main.{FIRST}..{SECOND}.reprocess"
        assert request.reprocess
        assert [each.generation for each in request.windows] == [generation] * 2
        assert summary.trained_windows == [FIRST, SECOND]
        assert runs.serving() == (SECOND, generation)


@pytest.mark.parametrize("end", ["failed", "cancelled", "lost"])
def test_a_reprocess_that_was_cut_off_goes_on_in_its_generations(runs: Runs, end: State) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    cut_off(runs, end)
    summary = runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
    assert runs.asked() == [(SECOND, 2)]
    assert runs.supervisors.started[-1].request.reprocess
    assert (summary.trained_windows, summary.reused_windows) == ([SECOND], [FIRST])
    assert runs.stages.ledger.generations(FIRST) == [1, 2]


def cut_off(runs: Runs, end: State = "failed") -> None:
    """A reprocess that has trained the first of its two windows, in generation 2."""
    lost = [runs.dies(1), *[runs.dies()] * SUPERVISOR_RESTARTS_MAX]
    scripts = lost if end == "lost" else [runs.ends(end, 1)]
    with pytest.raises(InfrastructureError, match=f"the job ended as {end}"):
        runs.run(FIRST, SECOND, *scripts, reprocess=True)
    assert runs.stages.ledger.generations(SECOND)[-1] == 2


def generations(runs: Runs) -> list[int]:
    """Of the plans that the windows are trained from, or are to be."""
    plans = (runs.stages.ledger.latest_plan(key) for key in KEYS)
    return [plan.generation for plan in plans if plan is not None]


@pytest.mark.guarantee(
    "a reprocess is refused, before or after its job was submitted",
    "nothing; what the windows were trained from stays their plan",
)
def test_a_refused_reprocess_leaves_the_line_as_it_is(runs: Runs) -> None:
    """Refused before its job is submitted, and by its trainer."""
    before = runs.run(FIRST, THIRD, runs.succeeds)
    MEMORY["a"] = table([])
    MEMORY["b"] = table([])
    with pytest.raises(NotReadyError, match=f"window {FIRST} cannot begin"):
        runs.run(FIRST, THIRD, reprocess=True)
    assert generations(runs) == [1, 1, 1]
    assert [runs.stages.ledger.proposed(key) for key in KEYS] == [2, 2, 2]
    for _ in range(2):
        again = runs.run(FIRST, THIRD)
        assert (again.seen, again.trained_windows) == (before.seen, [])


def test_what_a_trainer_refuses_counts_no_more(runs: Runs) -> None:
    before = runs.run(FIRST, THIRD, runs.succeeds)
    error = ErrorReport.of(ConfigError("rows would never be trained"))
    with pytest.raises(ConfigError, match="never be trained"):
        runs.run(SECOND, THIRD, runs.ends("failed", error=error), reprocess=True)
    assert generations(runs) == [1, 1, 1]
    again = runs.run(FIRST, THIRD)
    assert (again.seen, again.trained_windows) == (before.seen, [])
    with pytest.raises(ConfigError, match="never be trained"):
        runs.run(SECOND, THIRD, runs.ends("failed", 1, error=error), reprocess=True)
    assert generations(runs) == [1, 3, 1]
    runs.run(SECOND, THIRD, runs.succeeds, reprocess=True)
    assert runs.asked() == [(THIRD, 4)], "it continues"


def plans_again(runs: Runs) -> None:
    assert replanned(runs.stages.ledger, SECOND) == 3


def trains(runs: Runs) -> None:
    runs.train(runs.stages.ledger.plan(SECOND, 2))


def forgets(runs: Runs) -> None:
    assert runs.stages.ledger.forget(SECOND)


@pytest.mark.parametrize(("since", "second"), [(plans_again, 4), (trains, 3), (forgets, 3)])
def test_a_reprocess_begins_anew_where_its_windows_changed_since(
    runs: Runs, since: Callable[[Runs], None], second: int
) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    cut_off(runs)
    since(runs)
    runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
    assert runs.asked() == [(FIRST, 3), (SECOND, second)]


def summarise(runs: Runs, *windows: str) -> Summary:
    """What `forebay report` makes its page of."""
    return summarise_windows(runs.stages.pipeline, runs.chain, windows)


def test_a_report_says_which_windows_are_forgotten(runs: Runs) -> None:
    """Where a window cannot be trained again, its model's start being gone, it stays forgotten."""
    before = runs.run(FIRST, THIRD, runs.succeeds)
    assert runs.stages.ledger.forget(SECOND)
    found = summarise(runs, FIRST, SECOND, THIRD)
    note = found.notes[-1]
    assert note.startswith(f"forgotten windows: {SECOND};")
    assert found.rows_line == before.rows_line
    assert [each.sources for each in found.windows] == [each.sources for each in before.windows]
    runs.plan(1)
    assert summarise(runs, SECOND).notes[-1] == note, "its plan is a newer one"
    runs.run(SECOND, SECOND, runs.succeeds)
    found = summarise(runs, FIRST, SECOND, THIRD)
    assert note not in found.notes
    assert found.windows[2].stale == f"stale (built on generation 1 of {SECOND})"


def test_a_forgotten_window_that_nobody_judged_cannot_be_reported(runs: Runs) -> None:
    runs.trained(0)
    assert runs.stages.ledger.forget(FIRST)
    with pytest.raises(DataError, match=f"1 of window {FIRST}: it was forgotten: run the window"):
        summarise(runs, FIRST)


def test_a_window_whose_start_is_not_kept_is_refused_before_it_is_planned(runs: Runs) -> None:
    runs.run(FIRST, THIRD, runs.succeeds)
    database, ledger = database_of(runs.stages.home), runs.stages.ledger
    database.transact(lambda rows: rows.execute(delete(link_files)))
    assert ledger.forget(SECOND)
    before = ledger.history()
    for reprocess in (False, True):
        with pytest.raises(ConfigError, match=f"window {FIRST} can no longer be built on"):
            runs.run(SECOND, THIRD, reprocess=reprocess)
    assert (ledger.latest_plan(SECOND), ledger.history()) == (None, before)


def test_rows_that_do_not_agree_are_an_error(runs: Runs) -> None:
    runs.trained(0, read={"a": ReadRows(rows=3), "b": ReadRows(rows=1)})
    with pytest.raises(RowsLostError, match="source a: planned 2, served 3, trained 2, dead 0"):
        runs.run(FIRST)


def test_what_a_killed_job_left_unpublished_is_published(runs: Runs) -> None:
    export(runs.chain, runs.trained(0))
    assert runs.run(FIRST).published.window == FIRST
    export(runs.chain, runs.trained(1))
    runs.trained(2)
    assert runs.run(FIRST, SECOND).published.window == SECOND


def test_what_serves_is_not_published_again(runs: Runs) -> None:
    link = runs.trained(0)
    export(runs.chain, link)
    runs.chain.publish(link, datetime(2026, 3, 5, tzinfo=UTC))
    before = runs.chain.published()
    runs.run(FIRST)
    assert runs.chain.published() == before


@pytest.mark.guarantee(
    "the model that serves is damaged or gone in the store",
    "red at the end of the next `forebay run`, with its path",
)
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"bytez"), Path.unlink])
def test_a_damaged_model_that_serves_is_red_whenever_it_was_published(
    runs: Runs, damage: Callable[[Path], object]
) -> None:
    published = runs.run(FIRST, SECOND, runs.succeeds).published
    damage(Path(published.path))
    with pytest.raises(
        DataError, match=rf"model of window {SECOND}, which serves: .*--from {SECOND}"
    ) as red:
        runs.run(FIRST, FIRST)
    assert published.path in str(red.value)
    assert runs.run(SECOND, SECOND, runs.succeeds, reprocess=True).published.generation == 2


def test_under_a_pin_a_damaged_model_is_exported_again_and_not_trained(runs: Runs) -> None:
    path = Path(runs.run(FIRST, FIRST, runs.succeeds).published.path)
    first = there(runs.chain.newest(FIRST))
    runs.chain.serve(first.model, "serve", datetime(2026, 3, 5, tzinfo=UTC))
    runs.run(FIRST, FIRST, runs.succeeds, reprocess=True)
    told = why_window(runs.stages.target(0), lambda: runs.stages.now)
    assert f"; generation 1 of window {FIRST} is pinned and serves" in told.reason
    path.write_bytes(b"bytez")
    with pytest.raises(DataError, match="or let a whole one serve: forebay models serve ads "):
        runs.run(FIRST, FIRST)


def test_a_model_that_may_not_serve_is_not_passed_over_in_silence(runs: Runs) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    again = runs.run(FIRST, FIRST, runs.succeeds, reprocess=True)
    assert again.notes == [f"not published: window {SECOND} is later and serves"]
    assert runs.run(THIRD, THIRD, runs.succeeds, on_stale="train").notes[1:] == [
        f"not published: generation 1 of window {THIRD} is stale (built on generation 1 of {FIRST})"
    ]
    assert runs.serving() == (SECOND, 1)


def test_a_window_from_the_middle_of_a_job_has_no_model_to_publish(runs: Runs) -> None:
    runs.trained(0)
    assert runs.run(FIRST).published is None


def test_what_a_pin_keeps_back_is_said_with_the_way_out(runs: Runs) -> None:
    runs.run(FIRST, FIRST, runs.succeeds)
    runs.run(SECOND, SECOND, runs.succeeds)
    first = there(runs.chain.newest(FIRST))
    runs.chain.serve(first.model, "serve", datetime(2026, 3, 5, tzinfo=UTC))
    pinned = f"window {FIRST} is pinned and serves until `forebay models unpin ads`"
    summary = runs.run(THIRD, THIRD, runs.succeeds)
    assert summary.notes == [f"not published: {pinned}"]
    assert (summary.published.window, summary.published.pinned) == (FIRST, True)
    assert pinned in runs.run(FIRST).notes
    told = why_window(runs.stages.target(2), lambda: runs.stages.now)
    assert pinned in told.reason
    runs.chain.unpin()
    assert runs.run(THIRD).published.window == THIRD


def test_a_line_without_a_serving_path_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_runs(tmp_path, monkeypatch, job={"publish": {"serving": "exports"}}) as runs:
        notes = runs.run(FIRST, FIRST, runs.succeeds, line="trial").notes
    (note,) = notes
    assert "line 'trial' has no serving path: job.publish.serving is that of line 'main'" in note
