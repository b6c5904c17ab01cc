"""How `forebay run` follows its job to each end: lost, failed, cancelled, or with no database."""

from __future__ import annotations

import signal

import pytest
from support.model_lines import export
from support.scripted_runs import FIRST, SECOND, Runs, reports
from support.scripted_supervisor import Script, ScriptedSupervisor

from forebay.errors import DataError, InfrastructureError, RowsLostError
from forebay.executors.job.handle import GONE_SECONDS
from forebay.executors.run import SUPERVISOR_RESTARTS_MAX
from forebay.home.database.open import database_of
from forebay.home.database.sqlite import FILE_NAME
from forebay.home.paths import Home
from forebay.system.output.error_report import ErrorReport


def test_a_job_is_followed_to_its_end(runs: Runs) -> None:
    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()

        def ends() -> None:
            runs.trains(supervisor)
            supervisor.end("succeeded")

        runs.clock.steps = [
            lambda: None,
            lambda: reports(supervisor, window=FIRST, step=5),
            lambda: None,
            ends,
        ]

    runs.run(FIRST, FIRST, starts)
    told = [(progress.step, status.state) for progress, status in runs.told.progress]
    assert told == [(5, "running"), (5, "running"), (5, "succeeded")]


def test_a_job_may_end_before_its_trainer_has_reported(runs: Runs) -> None:
    summary = runs.run(FIRST, FIRST, runs.succeeds)
    assert list(summary.phases_seconds) == ["plan", "job", "evaluate", "total"]
    assert runs.told.progress == []


@pytest.mark.guarantee("a supervisor dies while it starts", "nothing")
def test_a_supervisor_that_is_killed_while_it_starts_is_followed_by_another(runs: Runs) -> None:
    killed: list[Script] = [lambda supervisor: supervisor.exit(-signal.SIGKILL)] * 3
    assert runs.run(FIRST, FIRST, *killed, runs.succeeds).trained_windows == [FIRST]
    assert len(runs.supervisors.started) == 4


@pytest.mark.parametrize(("code", "started"), [(1, 1), (0, 1), (-signal.SIGKILL, 4)])
def test_who_never_starts_is_not_started_for_ever(runs: Runs, code: int, started: int) -> None:
    ends: list[Script] = [lambda supervisor: supervisor.exit(code)] * started
    with pytest.raises(InfrastructureError, match=r"did not start: see supervisor\.log in"):
        runs.run(FIRST, FIRST, *ends)
    assert len(runs.supervisors.started) == started


def test_a_job_that_lost_its_supervisor_gets_another_one(runs: Runs) -> None:
    lost = [runs.dies(1), *[runs.dies()] * (SUPERVISOR_RESTARTS_MAX - 1)]

    def trains_the_rest(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        export(runs.chain, runs.train(runs.stages.ledger.plan(SECOND, 1)))
        supervisor.end("succeeded")

    summary = runs.run(FIRST, SECOND, *lost, trains_the_rest)
    assert summary.restarts["supervisor"] == SUPERVISOR_RESTARTS_MAX == 3
    assert (len(runs.told.submitted), summary.trained_windows) == (1, [FIRST, SECOND])


def test_a_job_that_failed_is_the_error_that_it_failed_with(runs: Runs) -> None:
    error = ErrorReport.of(DataError("part-0.parquet cannot be read"))
    with pytest.raises(DataError) as raised:
        runs.run(FIRST, FIRST, runs.ends("failed", error=error))
    logs = runs.stages.home.job(f"ads.main.{FIRST}..{FIRST}") / "logs"
    assert str(raised.value) == f"part-0.parquet cannot be read\nlogs: {logs}"


@pytest.mark.parametrize("reprocess", [False, True])
def test_a_job_that_says_it_succeeded_is_not_believed(runs: Runs, *, reprocess: bool) -> None:
    if reprocess:
        runs.trained(0)
    with pytest.raises(RowsLostError, match=f"run it again to train {FIRST}"):
        runs.run(FIRST, FIRST, runs.ends("succeeded"), reprocess=reprocess)


def test_a_database_that_comes_back_in_time_ends_nothing(runs: Runs) -> None:
    home = runs.stages.home

    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()

        def goes() -> None:
            away(home)
            runs.clock.now += GONE_SECONDS * 0.9

        def ends() -> None:
            back(home)
            runs.trains(supervisor)
            supervisor.end("succeeded")

        runs.clock.steps = [goes, lambda: back(home), goes, ends]

    runs.run(FIRST, FIRST, starts)
    assert len(runs.told.away) == 2
    assert all("unable to open database file" in text for text in runs.told.away)


def test_a_database_that_stays_away_longer_than_the_job_waits_is_an_error(runs: Runs) -> None:
    home = runs.stages.home

    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        read_at = runs.clock.now

        def goes() -> None:
            away(home)
            runs.clock.now = read_at + GONE_SECONDS

        runs.clock.steps = [goes, lambda: None]

    with pytest.raises(InfrastructureError, match="unable to open database file"):
        runs.run(FIRST, FIRST, starts)
    assert runs.clock.steps == []
    assert len(runs.told.away) == 1, "it is told until then"
    back(home)


def away(home: Home) -> None:
    """Something else is where the database was."""
    database_of(home).close()
    database = home.root / FILE_NAME
    database.rename(home.root / "moved.db")
    database.mkdir()


def back(home: Home) -> None:
    (home.root / FILE_NAME).rmdir()
    (home.root / "moved.db").rename(home.root / FILE_NAME)
