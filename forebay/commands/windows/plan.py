"""`forebay plan PIPELINE`: list the data tasks of windows and record them in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, note
from forebay.commands.shared.own_home import closed_home
from forebay.system.clock import utc_now
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forebay.datatasks.plans.plan import WindowPlan

PARTITIONS_SHOWN_MAX = 8
COLUMNS = ("window", "source", "generation", "data_from", "data_to", "tasks", "files", "rows")

_BELOW = ("reason", "offsets", "files", "generation")


def plan(
    pipeline: arguments.PipelineName,
    first: arguments.FirstWindow = "",
    last: arguments.LastWindow = "",
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Plan windows as `run` would, and record the plans.

    A later run uses them. Without --from and --to, all that is due, as in `run`.

    Trained windows are also compared with their data, and a note says if it has changed.
    """
    with working(f"planning pipeline {pipeline}") as seen:
        from forebay.datatasks.look.changes import deleted_since
        from forebay.datatasks.planning.planner import plan_windows
        from forebay.datatasks.window_range import asked_range
        from forebay.executors.arrow_start import start_arrow
        from forebay.executors.stages.target import LineTarget

        target = LineTarget.load(config, pipeline, line)
        closed_home(target.home)
        start_arrow(target.kinds)
        due = None if first else target.due_from()
        report = plan_windows(
            target.project.root,
            target.pipeline,
            target.project.sources,
            target.ledger,
            asked_range(target.pipeline, first, last, due, utc_now()),
            warm_start=None,
            clock=utc_now,
            waiting=seen.say,
        )
    shown = Output(output)
    rows = [row for plan in report.plans for row in _rows(plan)]
    columns = (*COLUMNS, "offsets", *(() if shown.is_json else ("reason",)))
    shown.table(rows if shown.is_json else [_as_text(row) for row in rows], columns, _BELOW)
    trained = [plan for plan in report.plans if target.is_trained(plan.window, plan.generation)]
    project = target.project
    gone = deleted_since(project.root, target.pipeline, project.sources, target.ledger, trained)
    for text in [*report.notes, *target.changed_notes(trained), *gone]:
        note(f"note: {text}")
    if not shown.is_json:
        shown.line()
        shown.line(
            f"{counted(len(report.plans), 'window')}, {report.reused} of them planned before, "
            f"{counted(report.storage_calls, 'storage call')}"
        )


def _rows(plan: WindowPlan) -> list[dict[str, object]]:
    return [
        {
            "window": plan.window,
            "generation": plan.generation,
            **{name: getattr(source, name) for name in (*COLUMNS[1:2], *COLUMNS[3:])},
            "offsets": source.offsets,
            "reason": source.reason,
        }
        for source in plan.sources.values()
    ]


def _as_text(row: dict[str, object]) -> dict[str, object]:
    """A row with the first partitions' offsets as text: 0:12-40 is [12, 40) of partition 0."""
    offsets = cast("Mapping[str, tuple[int, int]]", row["offsets"])
    shown = [f"{name}:{first}-{end}" for name, (first, end) in offsets.items()]
    more = len(shown) - PARTITIONS_SHOWN_MAX
    rest = [f"and {more} more (--output json)"] if more > 0 else []
    return row | {"offsets": " ".join([*shown[:PARTITIONS_SHOWN_MAX], *rest])}
