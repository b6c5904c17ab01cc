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
from forebay.datatasks.listings import Listings
from forebay.datatasks.open_source import open_source
from forebay.datatasks.operations import Clock, Share, not_complete, shares_of
from forebay.errors import ForebayError
from forebay.system.message import Message

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


class Why(Message):
    """One window's state, the reason for it, and what a person does next (empty: nothing)."""

    window: str
    state: State
    reason: str
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
            reason=f"the window ends at {_text(window.end)}, now it is {_text(now)}",
            next="wait until it is over",
        )
    listings = Listings(ledger)
    shares = shares_of(pipeline, sources, [window])
    for name, [share] in shares.items():
        asked = max(listings.first_asked(name, window.key).values(), default=None)
        head = listings.head(name, window.key)
        answered = head is not None and (asked is None or head.listed_at >= asked)
        why = None if answered else _why_source(root, sources[name], share, asked)
        if why is not None:
            return why
    last = _last_failure(ledger, window.key)
    run = f"forebay run {pipeline.name} --from {window.key} --to {window.key}"
    if last:
        return Why(
            window=window.key,
            state="not planned",
            reason=f"its data is complete now; planning it failed before: {last}",
            next=run,
        )
    listed = listings.windows().get(window.key)
    if listed:
        missing = [name for name in shares if name not in listed]
        still = f"; {', '.join(missing)} not yet" if missing else " and wait for the sink"
        return Why(
            window=window.key,
            state="not planned",
            reason=f"its run plans it: {', '.join(sorted(listed))} listed{still}",
            next="nothing; if its run has ended without, clear it in Airflow",
        )
    return Why(
        window=window.key,
        state="not planned",
        reason="nobody has asked for it yet; the data of all its sources is complete",
        next=run,
    )


def _why_source(root: Path, spec: SourceSpec, share: Share, asked: datetime | None) -> Why | None:
    """What this source's data lacks for the window; None when it is complete.

    asked: when the last run of the window in Airflow first asked for it.
    """
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
        if asked is not None:
            wait = f"its run waits until {asked + spec.ready.wait:%Y-%m-%dT%H:%M:%SZ}, then it "
        then = "goes on without these rows" if spec.ready.late == "skip" else "fails"
        reason, advice = found.reason, wait + then
    return Why(
        window=share.window.key,
        state="waiting",
        reason=not_complete(spec.name, share.span, reason),
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
