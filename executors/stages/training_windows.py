"""From plans to what a job is asked for: which windows are left, and how each is named."""

from __future__ import annotations

from forebay.config.windows import is_warm_start
from forebay.datatasks.ledger import Ledger, WindowPlan
from forebay.executors.job.request import WindowRequest
from forebay.executors.model_line.chain import ModelChain


def window_request(plan: WindowPlan) -> WindowRequest:
    """A plan as a job's window."""
    return WindowRequest(
        key=plan.window,
        generation=plan.generation,
        start=plan.start,
        end=plan.end,
        warm_start=is_warm_start(plan.window),
    )


def is_linked(ledger: Ledger, chain: ModelChain, window: str, generation: int) -> bool:
    """Whether a generation is trained to its end. The ledger then says so too, at the latest now.

    A job can die between the model's link and the ledger's mark.
    """
    if chain.link(window, generation) is None:
        return False
    if (ledger.trained(window) or 0) < generation:
        ledger.mark_trained(window, generation, {"repaired": True})
    return True
