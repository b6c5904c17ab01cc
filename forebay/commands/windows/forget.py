"""`forebay forget PIPELINE WINDOW`: let a line plan and train one window again, or all anew."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.known_pipeline import require_known
from forebay.commands.shared.output import Form, Output, OutputFormat, option
from forebay.errors import InfrastructureError, UsageError
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.executors.job.stored_jobs import StoredJob
    from forebay.executors.stages.target import LineTarget


def forget(
    pipeline: arguments.PipelineName,
    window: arguments.OneWindowKey = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    everything: Annotated[
        bool, option("--all", help="Begin the line anew: all its windows, plans and models go.")
    ] = False,
    yes: Annotated[bool, option("--yes", help="With --all: do not ask.")] = False,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Forget the plan of a window, so that it runs again.

    Its models stay until they are replaced; then later windows become stale. With --all,
    what serves stays until the first model of the new beginning may serve, whatever its window.
    Other lines keep their plans and models, and streams the borders of their windows.
    """
    from forebay.executors.job.stored_jobs import jobs_with_window
    from forebay.executors.stages.target import LineTarget

    if (window is None) != everything:
        raise UsageError("name one window to forget, or --all to begin the line anew")
    target = LineTarget.load(config, pipeline, line)
    require_known(target.home, pipeline, config, line)
    shown = Output(output)
    if window is None:
        _refuse_busy(target)
        _begin_anew(target, shown, yes=yes)
        return
    _refuse_active(target, f"window {window}", jobs_with_window(target.home, pipeline, window))
    if not target.ledger.forget(window):
        known = ", ".join(target.ledger.windows()[-5:]) or "none"
        raise UsageError(f"line {line!r} has no plan for {window!r} (its last windows: {known})")
    if shown.is_json:
        shown.json({"pipeline": pipeline, "line": line, "forgotten": window})
        return
    from forebay.executors.model_line.commands import of_line

    why = f"{of_line(target.chain, 'why')} {window}"
    shown.line(f"window {window} is forgotten on line {line!r}; `{why}` says how to run it again")


def _refuse_busy(target: LineTarget) -> None:
    from forebay.executors.job.stored_jobs import jobs_of

    jobs = jobs_of(target.home, target.pipeline.name, target.line, unended=True)
    _refuse_active(target, "the line", jobs)


def _refuse_active(target: LineTarget, what: str, jobs: list[StoredJob]) -> None:
    active = [job for job in jobs if job.status.is_active]
    if active:
        raise InfrastructureError(
            f"job {active[0].job_id} is working on {what}: wait until it ends, or end it "
            f"(`forebay cancel {target.pipeline.name} --line {active[0].row.line}`)"
        )


def _begin_anew(target: LineTarget, shown: Output, *, yes: bool) -> None:
    chain, windows = target.chain, target.chain.windows()
    span = f" ({windows[0]} to {windows[-1]})" if windows else ""
    text = (
        f"line {chain.line!r} of {chain.pipeline}: {counted(len(windows), 'trained window')}{span} "
        f"with models, scores and judgements, and {counted(len(target.ledger.windows()), 'plan')}"
    )
    serving = chain.published()
    stays = (
        "nothing serves"
        if serving is None
        else f"the model of window {serving.window} serves until one of the new beginning may"
    )
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{text} would go; {stays}. Add --yes to do it")
        typer.confirm(f"{text} go; {stays}. Begin anew?", abort=True)
        _refuse_busy(target)  # a job may have come meanwhile
    chain.begin_anew(forget_plans=True)
    if shown.is_json:
        shown.json({"pipeline": chain.pipeline, "line": chain.line, "windows": windows})
    else:
        shown.line(f"{text} are gone; {stays}. Files go with `forebay gc`")
