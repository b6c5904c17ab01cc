"""WindowFigures: what the event scores of one window say about its answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from forebay.mixture.metrics.auc import AucEstimate
from forebay.mixture.metrics.losses import LossEstimate


@dataclass(frozen=True)
class WindowFigures:
    """Figures of the judged rows whose events happened in a window.

    columns: names of the C scores. all_here: whether every window that brings complete labels is
    trained. auc, losses: of all columns; None with one class only.
    """

    window: str
    columns: tuple[str, ...]
    all_here: bool
    auc: AucEstimate | None
    losses: LossEstimate | None

    @property
    def counts(self) -> bool:
        """Whether the window may be part of pooled figures and verdicts."""
        return self.all_here and self.auc is not None


AnyFigures = TypeVar("AnyFigures", bound=WindowFigures)


def counted_windows(windows: Iterable[AnyFigures]) -> list[AnyFigures]:
    """Windows that count, and were scored by the same columns as the last of them."""
    counted = [one for one in windows if one.counts]
    return [one for one in counted if one.columns == counted[-1].columns]
