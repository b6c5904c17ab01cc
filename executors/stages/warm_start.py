"""The plan of a line's warm start, for whoever trains the line's first window."""

from __future__ import annotations

from datetime import UTC, datetime

from forebay.config.load import Project
from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import Window
from forebay.datatasks.ledger import Ledger, WindowPlan
from forebay.datatasks.planning import plan_windows


def warm_start_plan(
    project: Project, pipeline: PipelineSpec, ledger: Ledger, warm: Window
) -> WindowPlan:
    """The newest plan that is recorded of a warm start, otherwise one made now.

    Planning a window that looks like the line's first plans the warm start with it. Which window
    the line begins with is only sure when it is trained, so the plan may still be missing then.

    Raises:
        NotReadyError: when a source of the warm start is late.
        DataError: when stored data cannot be planned.
    """
    recorded = ledger.latest_plan(warm.key)
    if recorded is not None:
        return recorded
    report = plan_windows(
        project.root,
        pipeline,
        project.sources,
        ledger,
        [],
        warm_start=warm,
        reprocess=False,
        clock=lambda: datetime.now(UTC),
    )
    return report.plans[0]
