"""`forebay why PIPELINE WINDOW`: why a window is not done, in one answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.jobs import Job, jobs_with
from forebay.commands.output import (
    DEFAULT_CONFIG,
    DEFAULT_LINE,
    ConfigDir,
    Form,
    LineName,
    Output,
    OutputFormat,
)
from forebay.config.load import load_project
from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import (
    WARM_START_SEPARATOR,
    Window,
    is_warm_start,
    warm_start_window,
)
from forebay.errors import LineBusyError, UsageError
from forebay.home.paths import Home

if TYPE_CHECKING:
    from forebay.datatasks.ledger import Ledger, WindowPlan
    from forebay.datatasks.why import Why
    from forebay.executors.model_line.chain import ModelChain


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("why")(why)


def why(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    window: Annotated[str, typer.Argument(help="For example 2026-03-01 or 2026-03-01T07.")],
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Say how a window stands, why it is not done, and what to do next."""
    from forebay.datatasks.ledger import Ledger
    from forebay.datatasks.why import why_not_planned
    from forebay.executors.model_line.chain import ModelChain

    project = load_project(config)
    spec = project.pipeline(pipeline)
    asked = _window(spec, window)
    home = Home.from_environment()
    ledger = Ledger(home, spec.name)
    found = _why(home, spec, ledger, ModelChain(home, spec.name, line), asked)
    if found is None:
        found = why_not_planned(
            project.root, spec, project.sources, ledger, asked, lambda: datetime.now(UTC)
        )
    if line != DEFAULT_LINE:
        run = f"forebay run {spec.name} "
        found = found.model_copy(update={"next": found.next.replace(run, f"{run}--line {line} ")})
    shown = Output(output)
    if shown.is_json:
        shown.json(found.model_dump())
        return
    shown.line(f"window {found.window}: {found.state}")
    shown.line(found.reason)
    if found.next:
        shown.line(f"next: {found.next}")


def _window(spec: PipelineSpec, key: str) -> Window:
    grid = spec.dataset.grid
    try:
        if is_warm_start(key):
            start, _, first = key.partition(WARM_START_SEPARATOR)
            begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
            return warm_start_window(spec.train.warm_start or begin, grid.parse(first))
        window = grid.parse(key)
    except ValueError as error:
        raise UsageError(f"pipeline {spec.name!r}: {error}") from error
    if window.start < spec.dataset.start:
        raise UsageError(f"window {key} lies before the start of pipeline {spec.name!r}")
    if spec.dataset.end is not None and window.start >= spec.dataset.end:
        raise UsageError(f"window {key} lies behind the end of pipeline {spec.name!r}")
    return window


def _why(
    home: Home, spec: PipelineSpec, ledger: Ledger, chain: ModelChain, window: Window
) -> Why | None:
    """The state of a window that has a plan, a job or a model; None for any other."""
    jobs = [job for job in jobs_with(home, spec.name, window.key) if job.request.line == chain.line]
    plan = ledger.latest_plan(window.key)
    if jobs and not jobs[0].over:
        return _running(jobs[0], window.key)
    link = chain.newest(window.key)
    if plan is not None and link is not None and link.generation >= plan.generation:
        return _trained(plan, chain, window.key)
    ended = jobs and jobs[0].status.state in {"failed", "lost", "cancelled"}
    # What was planned anew since then does not stand where its last job left it.
    if ended and (plan is None or jobs[0].generation(window.key) >= plan.generation):
        return _ended(jobs[0], spec, window.key)
    if plan is None:
        return None
    first = is_warm_start(window.key) or window.start <= spec.dataset.start
    before = "" if first else spec.dataset.grid.before(window).key
    return _planned(plan, ledger, chain, before)


def _running(job: Job, window: str) -> Why:
    from forebay.datatasks.why import Why
    from forebay.executors.job.progress import read_progress

    progress = read_progress(job.folder)
    place = "it is starting"
    if progress is not None and progress.window:
        rows = ", ".join(f"{name} {count:,}" for name, count in progress.rows.items())
        place = (
            f"at step {progress.step:,} of window {progress.window} "
            f"({progress.windows_done} of {progress.windows_total} windows done; {rows} rows)"
        )
    restarts = sum(job.status.restarts.values())
    again = f"; {restarts} restarts so far" if restarts else ""
    reason = f"job {job.status.job_id} runs: {place}{again}"
    return Why(window=window, state="running", reason=reason, next=f"logs: {job.folder / 'logs'}")


def _trained(plan: WindowPlan, chain: ModelChain, window: str) -> Why:
    from forebay.datatasks.why import Why, plan_text, skipped_text

    link = chain.newest(window)
    stale = chain.stale_reason(link) if link else None
    missing = skipped_text(plan)
    reason = plan_text(plan) + (f"; without {missing}" if missing else "")
    if stale:
        first = min(key for key in chain.windows() if _is_stale(chain, key))
        again = f"forebay run {chain.pipeline} --from {first} --to {window} --reprocess"
        return Why(
            window=window,
            state="stale",
            reason=f"it is trained, but {stale}",
            next=again,
            generation=plan.generation,
        )
    return Why(window=window, state="trained", reason=reason, generation=plan.generation)


def _is_stale(chain: ModelChain, window: str) -> bool:
    link = chain.newest(window)
    return link is not None and chain.stale_reason(link) is not None


def _ended(job: Job, spec: PipelineSpec, window: str) -> Why:
    from forebay.datatasks.why import Why

    error = job.status.error
    said = f": {error.error}: {error.message}" if error else ""
    ended = "lost its supervisor" if job.status.state == "lost" else job.status.state
    reason = f"job {job.status.job_id} {'was ' if ended == 'cancelled' else ''}{ended}{said}"
    goes_on = f"(it goes on from the newest checkpoint; logs: {job.folder / 'logs'})"
    if error is not None and error.error == LineBusyError.__name__:
        reason = f"it waits for its line: {error.message}"
        return Why(window=window, state="planned", reason=reason, next="wait: it is asked again")
    if not job.request.publishes:  # a run in Airflow publishes by a stage of its own
        return Why(
            window=window,
            state="failed",
            reason=reason,
            next=f"clear this window's run in Airflow, from its training on {goes_on}",
        )
    first, last = job.request.windows[0].key, job.request.windows[-1].key
    first = first.rpartition(WARM_START_SEPARATOR)[2]
    return Why(
        window=window,
        state="failed",
        reason=reason,
        next=f"forebay run {spec.name} --from {first} --to {last} {goes_on}",
    )


def _planned(plan: WindowPlan, ledger: Ledger, chain: ModelChain, before: str) -> Why:
    """A plan that nothing has trained: does it wait for the window before it?"""
    from forebay.datatasks.why import Why, plan_text

    window = plan.window
    reason = plan_text(plan)
    start = last = window.rpartition(WARM_START_SEPARATOR)[2]
    trained = [key for key in chain.windows() if key < window]
    stands = [key for key in trained if key == before or key.endswith("_" + window)]
    earlier = [key for key in (*trained, *ledger.windows()) if key < window]
    if before and earlier and not stands:
        reason += f"; it waits for window {before}, which is not trained"
        start = before
    return Why(
        window=window,
        state="planned",
        reason=reason,
        next=f"forebay run {chain.pipeline} --from {start} --to {last}",
        generation=plan.generation,
    )
