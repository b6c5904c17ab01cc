"""The sink: what all sources found for a window becomes its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forebay.config.specs.windows import Window
from forebay.datatasks.planning.operations import Listed, asks_for, by_stream, fingerprint_of
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan, fewer_rows


@dataclass(frozen=True)
class RecordedPlan:
    """The plan that a window has now, whether it is a new one, and what a person should know."""

    plan: WindowPlan
    recorded: bool
    note: str = ""


def sink_window(
    ledger: Ledger, window: Window, found: Sequence[Listed], *, again: bool
) -> RecordedPlan:
    """Record a window, unless a plan of the same data is there or it is trained.

    What is to replace a trained generation is only proposed: it counts once it is submitted.

    found: answers in the pipeline's order. again: make a new generation whatever the data says.

    Raises:
        FencedError: when another process records the same generation at this moment.
    """
    plans = {each.plan.source: each.plan for each in found}
    fingerprint = fingerprint_of(plans)
    state = ledger.state(window.key)
    newest = state.plan
    if newest is not None and not again:
        if newest.is_open and asks_for(newest, plans.values()):  # who trains it goes on with it
            return RecordedPlan(newest, recorded=False)
        same = newest.fingerprint == fingerprint
        if state.is_trained and not same:
            text = (
                f"window {window.key}: its data has changed since it was trained; "
                "run with --reprocess, or clear its run in Airflow, to train it on the new data"
            )
            return RecordedPlan(newest, recorded=False, note=text)
        if state.is_trained or same:
            return RecordedPlan(newest, recorded=False)
    plan = WindowPlan(
        window=window.key,
        generation=state.next_generation,
        start=window.start,
        end=window.end,
        sources=plans,
        fingerprint=fingerprint,
    )
    ledger.record_plan(plan, by_stream(found), proposed=state.is_trained)
    fewer = fewer_rows(newest.counts, plan) if newest is not None and state.is_trained else []
    note = f"window {plan.window}: {'; '.join(fewer)}" if fewer else ""
    return RecordedPlan(plan, recorded=True, note=note)
