"""The job of one window: whether there is one, in which generation, and what it trains."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.jobs import request
from support.model_lines import keep_checkpoint, plan_empty, record_link
from support.scripted_supervisor import ScriptedSupervisor, scripted_supervisors
from support.scripted_supervisor import ScriptedSupervisors as Supervisors
from support.stages import DAY, START, Stages, noon, pipeline, replanned, stages, table
from support.there import there

from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import (
    ConfigError,
    DataError,
    InfrastructureError,
    LineBusyError,
    NotReadyError,
    UsageError,
)
from forebay.executors.job.request import State
from forebay.executors.job.stored_jobs import find_job, jobs_owned
from forebay.executors.job.submit import submit as submit_job
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import take_lease
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages.claims import CLAIMS_MAX, Claims
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.turn import PreviousRun
from forebay.home.paths import Home
from forebay.system.output.error_report import ErrorReport

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
WARM_START = f"2026-02-27_{FIRST}"
NONE, ACTIVE, DONE, FAILED = PreviousRun


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path) as each:
        yield each


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisors]:
    """The first one that is started runs until the test ends it."""
    with scripted_supervisors(monkeypatch) as each:
        each.scripts.append(ScriptedSupervisor.run)
        yield each


def submit(
    found: Stages,
    number: int = 0,
    claim: str = "r#0",
    *,
    again: bool = False,
    previous: PreviousRun = NONE,
    run: str | None = None,
) -> SubmitResult:
    return submit_window(found.target(number), claim=claim, again=again, previous=previous, run=run)


def train(found: Stages, *windows: str, generation: int = 1) -> None:
    chain = ModelChain(found.home, "ads")
    fingerprint = model_fingerprint_of(found.pipeline, found.sources)
    for key in windows:
        link = record_link(
            chain, key, {"a": 1}, generation=generation, model_fingerprint=fingerprint
        )
        keep_checkpoint(chain, link)


def plan(found: Stages, *windows: str) -> None:
    for key in windows:
        plan_empty(found.ledger, key)


def plan_days(found: Stages, count: int) -> None:
    for number in range(count):
        found.source(number)
        found.sink(number)


def asked(supervisor: ScriptedSupervisor) -> list[tuple[str, int]]:
    return [(each.key, each.generation) for each in supervisor.request.windows]


def owned(home: Home, run: str) -> list[str]:
    return [job.job_id for job in jobs_owned(home, run)]


@contextmanager
def line_held(home: Home, job_id: str) -> Iterator[None]:
    lease = take_lease(request(home, job_id, {}))
    try:
        yield
    finally:
        lease.release()


def test_a_planned_window_gets_a_job_of_its_own(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)
    job = f"ads.main.{FIRST}.g1"
    assert submit(found, run="r") == SubmitResult(
        state="submitted", window=FIRST, job_id=job, epoch=1, generation=1
    )
    (supervisor,) = jobs.started
    assert asked(supervisor) == [(FIRST, 1)]
    assert not supervisor.request.publishes, "a stage of its own does"
    assert (supervisor.interpreter, owned(found.home, "r")) == (sys.executable, [job])
    assert found.ledger.generations(FIRST) == [1]


def test_it_runs_in_the_interpreter_of_its_data_executors(
    tmp_path: Path, jobs: Supervisors
) -> None:
    runtime = {"data": {"runtime": {"python": "/opt/training/bin/python"}}}
    with stages(tmp_path, job={"roles": runtime}) as found:
        plan(found, FIRST)
        assert submit(found).state == "submitted"
    assert jobs.started[0].interpreter == "/opt/training/bin/python"


@pytest.mark.parametrize("again", [False, True])
def test_who_comes_again_gets_that_job(found: Stages, jobs: Supervisors, again: bool) -> None:
    plan(found, FIRST, SECOND)
    train(found, FIRST)
    first = submit(found, 1, run="one")
    for claim, epoch in (("r#0", 2), ("s#0", 3)):
        found_again = submit(found, 1, claim, again=again, previous=DONE, run="two")
        assert found_again == first.model_copy(update={"epoch": epoch})
    assert len(jobs.started) == 1
    assert (owned(found.home, "one"), owned(found.home, "two")) == ([], [first.job_id])


def test_a_job_that_runs_needs_no_turn(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST, SECOND)
    train(found, FIRST)
    first = submit(found, 1)
    for previous in (ACTIVE, FAILED):
        replanned(found.ledger, FIRST)
        assert submit(found, 1, previous=previous).job_id == first.job_id
    assert submit(found, 1, "s#0", previous=ACTIVE).state == "submitted", "without a claim too"
    assert len(jobs.started) == 1


@pytest.mark.parametrize("previous", list(PreviousRun))
def test_the_trained_need_no_turn(found: Stages, jobs: Supervisors, previous: PreviousRun) -> None:
    train(found, SECOND)
    with line_held(found.home, "somebody"):
        assert submit(found, 1, previous=previous) == SubmitResult(
            state="trained",
            window=SECOND,
            reason=f"generation 1 of window {SECOND} is trained",
            job_id=f"ads.main.{SECOND}.g1",
            generation=1,
        )
    assert jobs.started == []


@pytest.mark.parametrize("end", ["failed", "cancelled", "lost"])
def test_who_failed_goes_on_in_its_generation(found: Stages, jobs: Supervisors, end: State) -> None:
    plan(found, FIRST)
    first = submit(found)
    if end == "lost":
        jobs.started[0].die()
    else:
        jobs.started[0].end(end)
    jobs.scripts.append(ScriptedSupervisor.run)
    assert submit(found) == first.model_copy(update={"epoch": 2})
    job = there(find_job(found.home, first.job_id))
    assert (job.status.state, found.ledger.generations(FIRST)) == ("running", [1])


def test_a_claim_keeps_the_generation_of_its_first_call(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)
    assert (submit(found).generation, replanned(found.ledger, FIRST)) == (1, 2)
    assert submit(found).generation == 1
    jobs.started[0].end("failed")
    jobs.scripts += [ScriptedSupervisor.run, ScriptedSupervisor.run]
    assert submit(found).generation == 1, "from its newest seal"
    assert submit(found, claim="s#0").generation == 2
    assert [asked(each) for each in jobs.started] == [[(FIRST, 1)], [(FIRST, 1)], [(FIRST, 2)]]
    train(found, FIRST)
    assert (submit(found).generation, submit(found).state) == (1, "trained")


def test_a_run_deleted_and_made_again_asks_for_itself(found: Stages, jobs: Supervisors) -> None:
    """Airflow names the runs of a backfill by their dates: the second one has the same claims."""
    run, claim = "backfill__2026-03-01T00:00:00+00:00", "data_executors/0"
    MEMORY["a"] = table([noon(0)])
    found.source(0, by=f"{run}#0")
    assert found.sink(0, f"{run}#0").generation == 1
    assert submit(found, claim=f"{run}/{claim}").generation == 1
    jobs.started[0].end("failed")
    MEMORY["a"] = table([noon(0)] * 2)
    found.source(0, by=f"{run}#0")
    assert found.sink(0, f"{run}#0").rows == {"a": 2}
    jobs.scripts += [ScriptedSupervisor.run, ScriptedSupervisor.run]
    for _attempt in range(2):
        assert submit(found, claim=f"{run}/{claim}").generation == 2, "what was planned last"
    train(found, FIRST, generation=2)
    jobs.started[1].end("succeeded")
    found.source(0, by=f"{run}#0")
    assert found.sink(0, f"{run}#0", again=True).generation == 2
    again = submit(found, claim=f"{run}/{claim}", again=True)
    assert (again.state, again.generation) == ("submitted", 3)


def test_again_takes_a_plan_that_nobody_has_trained(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)
    assert submit(found, claim="r#1", again=True).generation == 1
    assert (asked(jobs.started[0]), found.ledger.generations(FIRST)) == ([(FIRST, 1)], [1])


def test_a_window_without_a_plan_is_refused(found: Stages) -> None:
    plan(found, SECOND)
    with pytest.raises(UsageError, match=f"window {FIRST} of pipeline 'ads' has no plan"):
        submit(found)


def test_a_gap_is_refused_before_anything_is_decided(found: Stages) -> None:
    train(found, FIRST)
    plan(found, SECOND, THIRD)
    with pytest.raises(ConfigError, match=f"window {SECOND} is not trained yet"):
        submit(found, 2)
    with pytest.raises(ConfigError, match=f"window {SECOND} is not trained although its run says"):
        submit(found, 2, previous=DONE)
    with pytest.raises(ConfigError, match=f"the run of window {SECOND}, .* failed"):
        submit(found, 2, previous=FAILED)
    assert Claims(found.ledger, THIRD).generation("r#0") is None
    assert not found.home.jobs.exists()


@pytest.mark.parametrize("previous", [NONE, DONE, FAILED])
def test_the_job_before_is_awaited(found: Stages, jobs: Supervisors, previous: PreviousRun) -> None:
    """`forebay run` trains a range, with no run of Airflow for its windows or after failed ones."""
    train(found, FIRST)
    plan(found, SECOND, THIRD)
    plans = [found.ledger.plan(SECOND, 1)]
    submit_job(found.home, found.target(1).job_request("ads.main.range", plans))
    with line_held(found.home, "ads.main.range"):
        waiting = submit(found, 2, previous=previous)
        assert waiting.state == "waiting"
        assert waiting.reason.endswith("waits for line 'main', which job ads.main.range trains")
    jobs.started[0].end("cancelled")
    with pytest.raises(ConfigError):
        submit(found, 2, previous=previous)


def test_a_failed_run_stops_the_next_unless_it_is_trained(found: Stages, jobs: Supervisors) -> None:
    train(found, FIRST)
    plan(found, SECOND)
    replanned(found.ledger, FIRST)
    with pytest.raises(ConfigError, match=f"the run of window {FIRST}, .* failed"):
        submit(found, 1, previous=FAILED)
    train(found, FIRST, generation=2)
    assert (submit(found, 1, previous=FAILED).state, len(jobs.started)) == ("submitted", 1)


def test_a_line_begins_after_red_windows_without_rows(found: Stages, jobs: Supervisors) -> None:
    MEMORY["a"] = table([noon(2)])
    plan_days(found, 3)
    assert submit(found, 2, previous=FAILED).state == "submitted"
    assert asked(jobs.started[0]) == [(THIRD, 1)]


def test_a_window_without_rows_begins_no_line_and_starts_no_job(found: Stages) -> None:
    MEMORY["a"] = table([noon(2)])
    plan_days(found, 2)
    for number, previous in ((0, NONE), (1, FAILED)):
        with pytest.raises(NotReadyError, match="cannot begin line 'main': it has no rows"):
            submit(found, number, previous=previous)
    assert not found.home.jobs.exists()


def test_a_line_does_not_begin_after_rows_that_are_not_trained(found: Stages) -> None:
    MEMORY["a"] = table([noon(0), noon(2)])
    plan_days(found, 3)
    with pytest.raises(ConfigError, match=f"the run of window {SECOND}, .* failed"):
        submit(found, 2, previous=FAILED)


@pytest.mark.parametrize("failed", [0, 1])
def test_no_line_begins_after_a_window_that_could_not_be_planned(
    found: Stages, failed: int
) -> None:
    MEMORY["a"] = table([noon(failed), noon(2)])
    for number in range(3):
        if number == failed:
            found.ledger.note(found.window(number).key, "not planned", reason="storage is away")
            continue
        found.source(number)
        found.sink(number)
    with pytest.raises(ConfigError, match=f"the run of window {SECOND}, .* failed"):
        submit(found, 2, previous=FAILED)


@pytest.mark.parametrize("previous", list(PreviousRun))
def test_no_run_before_the_first(found: Stages, jobs: Supervisors, previous: PreviousRun) -> None:
    """Airflow may know an older one, where the dataset's start was moved to a later window."""
    plan(found, FIRST)
    assert (submit(found, previous=previous).state, len(jobs.started)) == ("submitted", 1)


def test_a_declaration_that_no_longer_fits_the_line_is_refused(found: Stages) -> None:
    train(found, FIRST)
    plan(found, SECOND)
    found.pipeline = pipeline(
        ("a",), dataset={"features": {"n": {"encode": "numeric", "transform": "log1p"}}}
    )
    with pytest.raises(ConfigError, match="features, label, model or sources changed"):
        submit(found, 1, previous=DONE)
    assert Claims(found.ledger, SECOND).generation("r#0") is None
    assert submit(found).state == "trained", "nothing is to be done of it"


def test_who_waits_for_the_run_before_decides_nothing(found: Stages, jobs: Supervisors) -> None:
    train(found, FIRST, SECOND)
    reason = f"window {SECOND} waits for window {FIRST}, whose run has not ended"
    waiting = SubmitResult(state="waiting", window=SECOND, reason=reason)
    assert submit(found, 1, again=True, previous=ACTIVE) == waiting
    assert Claims(found.ledger, SECOND).generation("r#0") is None
    assert found.ledger.generations(SECOND) == [1]
    assert (submit(found, 1, again=True, previous=DONE).generation, len(jobs.started)) == (2, 1)


def test_a_line_that_another_job_trains_is_waited_for(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)
    with line_held(found.home, "ads.main.by-hand"):
        reason = f"window {FIRST} waits for line 'main', which job ads.main.by-hand trains"
        waiting = SubmitResult(state="waiting", window=FIRST, reason=reason)
        assert submit(found) == waiting
        assert Claims(found.ledger, FIRST).generation("r#0") is None
    assert (submit(found).state, len(jobs.started)) == ("submitted", 1)


def test_a_line_that_this_job_gives_back_is_not_awaited(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)
    first = submit(found)
    jobs.started[0].end("failed")
    jobs.scripts.append(ScriptedSupervisor.run)
    with line_held(found.home, first.job_id):  # its trainer is about to end
        assert submit(found).epoch == 2


def test_a_line_that_is_taken_after_a_look_is_waited_for(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)

    def comes_too_late(supervisor: ScriptedSupervisor) -> None:
        with line_held(found.home, "ads.main.by-hand"), pytest.raises(LineBusyError) as busy:
            take_lease(supervisor.request)
        supervisor.end("failed", error=ErrorReport.of(busy.value))

    jobs.scripts.insert(0, comes_too_late)
    waiting = submit(found)
    assert waiting.state == "waiting"
    assert waiting.reason.startswith("job ads.main.by-hand trains line 'main'")
    assert (submit(found).state, found.ledger.generations(FIRST)) == ("submitted", [1])


def test_any_other_reason_why_no_job_starts_is_an_error(found: Stages, jobs: Supervisors) -> None:
    plan(found, FIRST)
    full = ErrorReport.of(InfrastructureError("the disk is full"))
    jobs.scripts.insert(0, lambda supervisor: supervisor.end("failed", error=full))
    with pytest.raises(InfrastructureError, match="the disk is full"):
        submit(found)


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Stages]:
    """A dataset whose lines begin with two days of history; each day has one row."""
    with stages(tmp_path, train={"warm_start": "2026-02-27"}) as found:
        MEMORY["a"] = table([noon(number) for number in range(-2, 3)])
        yield found


def test_a_recorded_history_is_taken_as_it_is(warm: Stages, jobs: Supervisors) -> None:
    plan(warm, FIRST, WARM_START)
    assert replanned(warm.ledger, WARM_START) == 2
    submit(warm)
    assert asked(jobs.started[0]) == [(WARM_START, 2), (FIRST, 1)]
    assert warm.ledger.generations(WARM_START) == [1, 2]
    assert warm.scans == [], "nobody looks at its rows again"


def test_a_history_that_is_trained_is_not_trained_again(warm: Stages, jobs: Supervisors) -> None:
    train(warm, WARM_START)
    plan(warm, FIRST)
    submit(warm)
    assert asked(jobs.started[0]) == [(FIRST, 1)]


def test_what_is_trained_is_made_anew_once(found: Stages) -> None:
    plan(found, FIRST)
    claims = Claims(found.ledger, FIRST)
    assert claims.decide("run#0", renewed=None) == 1
    assert Claims(found.ledger, SECOND).generation("run#0") is None
    assert claims.decide("run#1", renewed=1) == 2
    assert claims.decide("run#1", renewed=1) == 2
    assert found.ledger.generations(FIRST) == [1, 2]
    assert found.ledger.plan(FIRST, 2) == found.ledger.plan(FIRST, 1).model_copy(
        update={"generation": 2}
    )
    assert claims.decide("run#2", renewed=1) == 2, "somebody else has made it anew already"
    assert [entry["generation"] for entry in found.ledger.history(FIRST)] == [1, 2]
    assert claims.decide("run#0", renewed=None) == 1, "as its first call was told"


def test_the_oldest_claims_go(found: Stages) -> None:
    plan(found, FIRST)
    claims = Claims(found.ledger, FIRST)
    for number in range(CLAIMS_MAX + 3):
        claims.decide(f"run#{number}", renewed=None)
    assert claims.generation("run#2") is None
    assert claims.generation("run#3") == 1
    assert claims.generation(f"run#{CLAIMS_MAX + 2}") == 1


def test_a_forgotten_window_has_no_claims(found: Stages) -> None:
    plan(found, FIRST)
    claims = Claims(found.ledger, FIRST)
    claims.decide("run#0", renewed=None)
    assert found.ledger.forget(FIRST)
    assert claims.generation("run#0") is None
    with pytest.raises(DataError, match="has no plan"):
        claims.decide("run#0", renewed=None)


def test_the_history_that_a_line_begins_with_is_planned(warm: Stages, jobs: Supervisors) -> None:
    plan(warm, FIRST)
    assert submit(warm).state == "submitted"
    assert asked(jobs.started[0]) == [(WARM_START, 1), (FIRST, 1)]
    planned = there(warm.ledger.latest_plan(WARM_START))
    assert (planned.start, planned.end) == (START - 2 * DAY, START)
    assert {name: each.rows for name, each in planned.sources.items()} == {"a": 2}
    windows = jobs.started[0].request.windows
    assert [each.warm_start for each in windows] == [True, False]
