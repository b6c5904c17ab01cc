"""Lines that begin anew, and lines that would have begun with a window without rows."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from support.jobs import ToldJob, failed
from support.scripted_runs import FIRST, SECOND, THIRD, Runs
from support.stages import noon, pipeline, table
from support.there import there

from forebay import cli
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import NotReadyError
from forebay.executors.model_line.start import may_begin_with, warm_start_of
from forebay.executors.stages.target import LineTarget

WARM = f"2026-02-27_{FIRST}"
NOT_READY = failed("NotReadyError", "it has no rows", 2)


def with_history(runs: Runs) -> None:
    runs.stages.pipeline = pipeline(tuple(runs.stages.sources), train={"warm_start": "2026-02-27"})


@pytest.mark.guarantee(
    "a line is begun anew (`forebay forget --all`)",
    "nothing; what serves stays until a model of the new beginning may; read again: all windows"
    " that are trained again",
)
def test_what_serves_stays_until_a_model_of_the_new_beginning_may(runs: Runs) -> None:
    runs.run(SECOND, THIRD, runs.succeeds)
    runs.run(SECOND, SECOND, runs.succeeds, line="other")
    assert runs.serving() == (THIRD, 1)
    runs.chain.begin_anew(forget_plans=True)
    assert (runs.chain.windows(), runs.serving()) == ([], (THIRD, 1))
    model, again = there(runs.chain.published()), runs.run(FIRST, FIRST, runs.succeeds)
    assert again.published.window == FIRST, "although the one that served is later"
    assert again.published.path != model.path
    runs.run(SECOND, THIRD, runs.succeeds)
    assert runs.asked() == [(SECOND, 2), (THIRD, 2)]
    assert runs.stages.ledger.latest_plan(SECOND).generation == 2  # type: ignore[union-attr]


def commanded(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the line of these runs."""
    target = LineTarget(runs.stages.project, runs.stages.pipeline, runs.stages.home, "main")
    monkeypatch.setattr(LineTarget, "load", lambda *_asked: target)


def test_the_command_says_what_goes_and_asks(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    commanded(runs, monkeypatch)
    assert (cli.run(["forget", "ads"]), cli.run(["forget", "ads", "--all"])) == (1, 1)
    told = capsys.readouterr().err
    assert f"line 'main' of ads: 2 trained windows ({FIRST} to {SECOND})" in told
    assert "Add --yes" in told
    assert runs.chain.windows() == [FIRST, SECOND]
    assert cli.run(["forget", "ads", "--all", "--yes"]) == 0
    assert f"the model of window {SECOND} serves until" in capsys.readouterr().out
    assert runs.chain.windows() == []


def test_a_job_that_comes_while_the_command_asks(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    commanded(runs, monkeypatch)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    with ExitStack() as living:

        def answer(*_asked: object, **_options: object) -> None:
            job.tell("running", ended_at=None)
            living.enter_context(job.supervised())

        job = ToldJob(runs.stages.home)
        monkeypatch.setattr("typer.confirm", answer)
        assert cli.run(["forget", "ads", "--all"]) == 4
    assert f"job {job.job_id} is working on the line" in capsys.readouterr().err
    assert runs.chain.windows() == [FIRST, SECOND]


def test_a_window_without_rows_begins_no_line_with_a_history(runs: Runs) -> None:
    """It is red before its history is trained, which would bind all that comes after."""
    with_history(runs)
    for name in runs.stages.sources:
        MEMORY[name] = table([noon(-1), noon(1)])
    with pytest.raises(NotReadyError, match=f"--from {SECOND}"):
        runs.run(FIRST, SECOND)
    runs.plan(1)
    runs.stages.source(0, "a")
    runs.stages.source(0, "b")
    with pytest.raises(NotReadyError, match=f"window {FIRST} cannot begin"):
        runs.stages.sink(0)
    assert runs.chain.windows() == []
    runs.run(SECOND, SECOND, runs.succeeds)
    assert runs.chain.windows() == [f"2026-02-27_{SECOND}", SECOND]


def test_a_history_binds_nobody_until_a_window_follows_it(runs: Runs) -> None:
    """Where only reading tells that the first window has no rows, its history is linked before."""
    with_history(runs)
    for name in runs.stages.sources:
        MEMORY[name] = table([noon(-1), noon(0), noon(1), noon(2)])
    with pytest.raises(NotReadyError):
        runs.run(THIRD, THIRD, runs.ends("failed", 1, error=NOT_READY))
    assert runs.chain.windows() == [f"2026-02-27_{THIRD}"]
    first = runs.stages.window(0)
    assert there(warm_start_of(runs.stages.pipeline, runs.chain, first)).key == WARM
    assert may_begin_with(runs.chain, runs.stages.pipeline.dataset.grid, first) is False
    runs.run(FIRST, SECOND, runs.succeeds)
    assert runs.chain.windows() == [WARM, FIRST, SECOND]
