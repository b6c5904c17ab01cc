"""Why a window is not planned, as far as ledger and storage can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from forebay.config.specs.base import format_duration
from forebay.config.specs.datasets import source_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.planning.operations import (
    Clock,
    Listed,
    Share,
    left_out,
    not_complete,
    nothing_in,
    scan_shares,
    shares_of,
    too_late,
)
from forebay.datatasks.plans import plan_rows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.datatasks.sources.common.contract.base import SourcePlanner
from forebay.datatasks.sources.common.contract.deleted_rows import MINUTE
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.errors import ForebayError

_PLANNING = {"planned", "not planned", "forgotten"}


class NotPlanned(NamedTuple):
    """A window without a plan: its state, the reason for it, and what a person does next.

    command: which command does that, where one does: to run the window, or to ask again.
    """

    state: Literal["not over", "waiting", "not planned"]
    reason: str
    next: str
    command: Literal["", "run", "why"] = ""


def why_not_planned(
    root: Path,
    pipeline: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    ledger: Ledger,
    window: Window,
    clock: Clock,
) -> NotPlanned:
    """The reason why a window has no plan. Asks every source whether its data is complete."""
    now = clock()
    if now < window.end:
        return NotPlanned(
            "not over",
            f"the window ends at {window.end:{MINUTE}}, and it is now {now:{MINUTE}}",
            "wait until it is over",
        )
    listings = Listings(ledger)
    shares = shares_of(pipeline, sources, [window])
    for name, [share] in shares.items():
        since = max(listings.first_asked(name, window.key).values(), default=None)
        head = listings.head(name, window.key)
        answered = head is not None and (since is None or head.listed_at >= since)
        why = None if answered else _why_source(root, sources[source_of(name)], share, since)
        if why is not None:
            return why
    last = last_failure(ledger, window.key)
    if last:
        reason = f"its data is complete now; planning it failed before: {last}"
        return NotPlanned("not planned", reason, "run it", "run")
    listed = listings.windows().get(window.key)
    if listed:
        missing = [name for name in shares if name not in listed]
        still = f"waiting for {', '.join(missing) or 'the task sink'}"
        return NotPlanned(
            "not planned",
            f"its run is planning it: {', '.join(sorted(listed))} listed, {still}",
            "nothing while its run goes on; if that has ended, run it, or create a backfill with "
            "Missing and Errored Runs in Airflow (mark a run failed first that stays queued)",
            "run",
        )
    return NotPlanned(
        "not planned",
        "no run has asked for it yet; the data of all its sources is complete",
        "run it",
        "run",
    )


def _why_source(
    root: Path, spec: SourceSpec, share: Share, since: datetime | None
) -> NotPlanned | None:
    """What is missing of this source's data for the window; None when it is complete.

    since: when the last run of the window in Airflow first asked for it.
    """
    if share.span is None:
        return None
    try:
        with closing(open_source(spec, root)) as source:
            found = source.readiness(share.span)
    except ForebayError as error:
        reason, advice = str(error), f"make source {spec.name!r} readable, then ask again"
        return NotPlanned("waiting", not_complete(share.source, share.span, reason), advice, "why")
    else:
        if found.ready:
            return None
        wait = f"a run waits {format_duration(spec.ready.wait)}, then it "
        if since is not None:
            wait = f"its run waits until {since + spec.ready.wait:%Y-%m-%dT%H:%M:%SZ}, then it "
        then = "continues without these rows" if spec.ready.late == "skip" else "fails"
        reason, advice = found.reason, wait + then
        if found.not_before is not None:
            advice = f"nothing: it is checked from {found.not_before:%Y-%m-%dT%H:%M:%SZ} on"
    return NotPlanned("waiting", not_complete(share.source, share.span, reason), advice)


def _listed_now(source: SourcePlanner, asked: Sequence[Share]) -> dict[str, Listed]:
    """Shares that have time in the source: late ones as if a run had waited for them."""
    complete, found = list[Share](), dict[str, Listed]()
    states = source.readiness_of([share.span for share in asked if share.span is not None])
    for share, state in zip(asked, states, strict=True):
        if state.ready:
            complete.append(share)
        elif source.spec.ready.late == "skip":
            found[share.window.key] = left_out(share, state.reason)
        else:
            raise too_late(share.source, timedelta(0), share.window.key, state.reason)
    return found | (scan_shares(source, complete)[0] if complete else {})


def plans_now(
    root: Path,
    pipeline: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    ledger: Ledger,
    windows: Sequence[Window],
) -> list[WindowPlan]:
    """What windows, in order, would be planned as, with their data as it is now.

    Nothing is written.

    Raises:
        ForebayError: when they cannot be planned.
    """
    database = ledger.database
    database.read(lambda rows: plan_rows.require_same_spans(rows, pipeline.name, windows))
    found: dict[str, dict[str, SourcePlan]] = {window.key: {} for window in windows}
    for name, shares in shares_of(pipeline, sources, windows).items():
        asked = [share for share in shares if share.span is not None]
        listed = {share.window.key: nothing_in(share) for share in shares}
        spec = sources[source_of(name)]
        borders = DecidedBorders(database, pipeline.name, spec.name, only_look=True)
        cache = PlanCache(ledger.home, only_look=True)
        if asked:
            with closing(open_source(spec, root, borders, cache)) as source:
                listed |= _listed_now(source, asked)
        for key, of_source in listed.items():
            found[key][name] = of_source.plan
    return [
        WindowPlan(
            window=window.key,
            generation=1,
            start=window.start,
            end=window.end,
            sources=found[window.key],
            fingerprint="",
        )
        for window in windows
    ]


def last_failure(ledger: Ledger, window: str) -> str:
    """Why planning a window failed since it was last planned; empty when it did not."""
    entries = [each for each in ledger.history(window) if each.get("event") in _PLANNING]
    if not entries or entries[-1]["event"] != "not planned":
        return ""
    return f"{entries[-1].get('reason')} ({entries[-1].get('at')})"
