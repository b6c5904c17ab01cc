"""The timer and sink stages: whether a window has to be trained, and its plan from its listings."""

from __future__ import annotations

import pyarrow.compute as pc

from forebay.config.specs.datasets import source_of
from forebay.datatasks.planning.listings import Listing, Listings
from forebay.datatasks.planning.operations import (
    Listed,
    Share,
    declaration_of,
    fingerprint_of,
    identity_of,
    shares_of,
)
from forebay.datatasks.planning.sink import sink_window
from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.errors import UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.start import warm_start_of
from forebay.executors.stages.claims import Claims
from forebay.executors.stages.results import SinkResult, TimerResult
from forebay.executors.stages.target import StageTarget


def time_window(target: StageTarget, *, again: bool) -> TimerResult:
    """Whether a window has to be run.

    A trained one does not, unless `again` is set, or it was never judged, or its row counts did
    not agree: then the stages after training are repeated, and nothing is trained.
    """
    ledger, chain, key = target.ledger, target.chain, target.key
    plan = ledger.latest_plan(key)
    if plan is None:
        return TimerResult(state="open", window=key, reason="it has no plan yet")
    generation = plan.generation
    link = chain.link(key, generation)
    trained, reason = f"already trained in generation {generation}", ""
    if link is None:
        reason = f"it is planned as generation {generation}, but not trained"
    elif again:
        reason = f"{trained}, and is to be trained again"
    elif doubt := _doubt(chain, link):
        reason = f"{trained}, but {doubt}"
    if link is None or reason:
        return TimerResult(
            state="open",
            window=key,
            generation=generation,
            reason=reason,
            again=again and link is not None,
        )
    outdated = chain.stale_reason(link) or ledger.data_changed({key: generation}).get(key)
    Listings(ledger).drop(key)  # no sink will run that would record them
    return TimerResult(
        state="trained",
        window=key,
        generation=generation,
        reason=f"{trained}, but {outdated}" if outdated else trained,
        next='clear this run, or trigger it with the configuration {"reprocess": true}, '
        "to read and train it again",
    )


def _doubt(chain: ModelChain, link: Link) -> str:
    """Why a trained window is not done: not judged, or its row counts disagree; otherwise empty.

    A window without an exported model was trained in the middle of a range, which is judged and
    published as a whole.
    """
    judgement = chain.judgement(link)
    if judgement is None:
        return "it has not been judged yet" if "saved_model" in link.files else ""
    return "" if judgement.rows_agree else judgement.rows_line


def record_window(target: StageTarget, *, asked_by: str, again: bool) -> SinkResult:
    """Record what the sources listed for a window, and for the warm start before it.

    `again` makes a new generation of a trained window whose data changed. If the data is the same,
    the submission makes the new generation: a sink that is cleared alone must not leave a plan
    that nobody trains. A window that is not trained yet has its new generation already.

    Raises:
        UsageError: when a source has to be listed first.
        FencedError: when another sink records the window at this moment.
        NotReadyError: when the window is to begin a line with a warm start, and has no rows.
    """
    window, ledger = target.window, target.ledger
    listings = Listings(ledger)
    shares = shares_of(target.pipeline, target.project.sources, [window])
    heads: dict[str, ListingHead] = {}
    found = [_answer(target, listings, share, heads, asked_by) for [share] in shares.values()]
    newest, trained, _ = ledger.state(window.key)
    changed = newest is None or newest.fingerprint != fingerprint_of(
        {each.plan.source: each.plan for each in found}
    )
    sunk = sink_window(ledger, window, found, again=again and trained and changed)
    if not sunk.recorded:
        ledger.drop_proposal(window.key)
        ledger.note(window.key, "plan kept", generation=sunk.plan.generation, asked_by=asked_by)
    Claims(ledger, window.key).drop_run(_run_of(asked_by))
    listings.drop(window.key, heads)
    listings.drop_trained()
    warm = warm_start_of(target.pipeline, target.chain, window)
    if warm is not None:
        target.require_rows([sunk.plan])
        _record_warm_start(target.at(warm))
    plans = sunk.plan.sources
    return SinkResult(
        window=window.key,
        generation=sunk.plan.generation,
        tasks=sum(each.tasks for each in plans.values()),
        rows={name: each.rows for name, each in plans.items()},
        fingerprint=sunk.plan.fingerprint,
        recorded=sunk.recorded,
        notes=[sunk.note] if sunk.note else [],
    )


def _run_of(asked_by: str) -> str:
    """The run that a pass belongs to: `<DAG id>/<run id>` of `<DAG id>/<run id>#<clear number>`."""
    return asked_by.rpartition("#")[0]


def _newest(target: StageTarget, listings: Listings, share: Share) -> Listing | None:
    """The newest answer for a share, if it is one to what is declared now."""
    found = listings.read(share.source, share.window.key)
    spec = target.project.sources[source_of(share.source)]
    if found is None or found.head.declared != declaration_of(spec):
        return None
    return found if identity_of(found.head.plan) == identity_of(share.plan()) else None


def _answer(
    target: StageTarget,
    listings: Listings,
    share: Share,
    heads: dict[str, ListingHead],
    asked_by: str,
) -> Listed:
    """The newest listing of a source for this run, or else its part of the newest plan.

    If only one source or the sink was cleared, the other sources have no new listing.
    """
    ledger, key, declared = target.ledger, share.window.key, identity_of(share.plan())
    listing = _newest(target, listings, share)
    if listing is not None and _run_of(listing.head.asked_by) == _run_of(asked_by):
        heads[share.source] = listing.head
        return listing.listed
    plan = ledger.latest_plan(key)
    part = plan.sources.get(share.source) if plan is not None else None
    if plan is None or part is None or identity_of(part) != declared:
        raise UsageError(
            f"window {key}: source {share.source!r} was not listed by this run under its current "
            "declaration: clear its task and its downstream tasks"
        )
    tasks = ledger.tasks(key, plan.generation)
    return Listed(part, tasks.filter(pc.equal(tasks["source"], share.source)))


def _record_warm_start(warm: StageTarget) -> None:
    """Record the warm start once all sources have listed it. A trained one is left as it is."""
    ledger, listings = warm.ledger, Listings(warm.ledger)
    shares = shares_of(warm.pipeline, warm.project.sources, [warm.window])
    heads: dict[str, ListingHead] = {}
    found = []
    for name, [share] in shares.items():
        listing = _newest(warm, listings, share)
        if listing is None:
            return
        heads[name] = listing.head
        found.append(listing.listed)
    sink_window(ledger, warm.window, found, again=False)
    listings.drop(warm.key, heads)
