"""Why a window is not planned, as far as ledger and storage can tell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from forebay.config.base import format_duration
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.config.windows import Window
from forebay.datatasks.ledger import SKIPPED, Ledger, WindowPlan
from forebay.datatasks.open_source import open_source
from forebay.datatasks.operations import Clock, Share, shares_of
from forebay.datatasks.tasks import Wire
from forebay.errors import ForebayError

State = Literal[
    "not over",
    "waiting",
    "not planned",
    "planned",
    "running",
    "failed",
    "stale",
    "trained",
]


class Why(Wire):
    """One window's state, the reason for it, and what a person does next (empty: nothing)."""

    window: str
    state: State
    because: str
    next: str = ""
    generation: int | None = None


def why_not_planned(
    root: Path,
    pipeline: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    ledger: Ledger,
    window: Window,
    clock: Clock,
) -> Why:
    """The reason why a window has no plan. Asks every source whether its data is complete."""
    now = clock()
    if now < window.end:
        return Why(
            window=window.key,
            state="not over",
            because=f"the window ends at {_text(window.end)}, now it is {_text(now)}",
            next="wait until it is over",
        )
    for found in shares_of(pipeline, sources, [window]).values():
        why = _why_source(root, sources[found[0].source], found[0])
        if why is not None:
            return why
    last = _last_failure(ledger, window.key)
    run = f"forebay run {pipeline.name} --from {window.key} --to {window.key}"
    if last:
        return Why(
            window=window.key,
            state="not planned",
            because=f"its data is complete now; planning it failed before: {last}",
            next=run,
        )
    return Why(
        window=window.key,
        state="not planned",
        because="nobody has asked for it yet; the data of all its sources is complete",
        next=run,
    )


def _why_source(root: Path, spec: SourceSpec, share: Share) -> Why | None:
    """What this source's data lacks for the window; None when it is complete."""
    if share.span is None:
        return None
    try:
        source = open_source(spec, root)
        try:
            found = source.readiness(share.span)
        finally:
            source.close()
    except ForebayError as error:
        reason, advice = str(error), f"forebay preview {spec.name}"
    else:
        if found.ready:
            return None
        wait = f"a run waits {format_duration(spec.ready.wait)}, then it "
        then = "goes on without these rows" if spec.ready.late == "skip" else "fails"
        reason, advice = found.reason, wait + then
    span = f"{_text(share.span.start)} to {_text(share.span.end)}"
    return Why(
        window=share.window.key,
        state="waiting",
        because=f"source {spec.name!r} is not complete for {span}: {reason}",
        next=advice,
    )


def _last_failure(ledger: Ledger, window: str) -> str:
    entries = [entry for entry in ledger.history(window) if entry.get("event") == "not planned"]
    return f"{entries[-1].get('reason')} ({entries[-1].get('at')})" if entries else ""


def plan_text(plan: WindowPlan) -> str:
    """A plan in one line: generation, tasks and rows of each source, and reasons for none."""
    parts = []
    for source in plan.sources.values():
        rows = "an unknown number of" if source.rows is None else f"{source.rows:,}"
        reason = f" ({source.reason})" if source.reason else ""
        parts.append(f"{source.source} {rows} rows{reason}")
    return f"generation {plan.generation}: " + ", ".join(parts)


def skipped_text(plan: WindowPlan) -> str:
    """Sources that the plan goes on without; an empty text when there are none."""
    skipped = [
        f"{source.source} ({source.reason.removeprefix(SKIPPED)})"
        for source in plan.sources.values()
        if source.reason.startswith(SKIPPED)
    ]
    return ", ".join(skipped)


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%MZ")
