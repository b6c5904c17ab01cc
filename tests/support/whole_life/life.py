"""All that happens to three windows, in steps that check for themselves whether they are done.

Called again after a death, it continues, as it does for whoever runs the same commands again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from forebay.executors.retention.home_garbage import remove_garbage
from forebay.executors.run import Run
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.plan import record_window, time_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.source import SourceStage
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget, StageTarget
from forebay.executors.stages.turn import PreviousRun

WINDOWS = ("2026-03-01", "2026-03-02", "2026-03-03")
FIRST, SECOND, THIRD = WINDOWS
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def live(target: LineTarget) -> None:
    """Two windows as `forebay run` does them, the third as Airflow does, then all that follows."""
    Run(target).execute(FIRST, SECOND)
    if _generation(target, SECOND) < 2:
        Run(target).execute(SECOND, SECOND, reprocess=True)
    third = target.at(target.pipeline.dataset.grid.parse(THIRD))
    if _generation(target, THIRD) < 1:
        _by_stages(third, "first")
    if _generation(target, THIRD) < 2:
        if time_window(third, again=False).generation == 1:
            _serve(third)
            target.ledger.forget(THIRD)
        _by_stages(third, "second")
    _serve(third)
    remove_garbage(target.home, target.project)


def _by_stages(target: StageTarget, run: str) -> None:
    time_window(target, again=False)
    for source in target.pipeline.source_names:
        found = SourceStage(target, source, lambda: NOW).list_window(run)
        assert found.state == "listed", found
    record_window(target, asked_by=run, again=False)
    submit_window(target, claim=run, again=False, previous=PreviousRun.DONE)
    attached = submit_window(target, claim=run, again=False, previous=PreviousRun.DONE)
    assert attached.state == "trained", attached


def _serve(target: StageTarget) -> None:
    evaluate_window(target)
    publish_window(target, _generation(target, target.key))


def _generation(target: LineTarget, window: str) -> int:
    link = target.chain.newest(window)
    return link.generation if link else 0
