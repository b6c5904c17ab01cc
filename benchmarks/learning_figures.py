"""Figures of one replayed line: of every judged window, as the gate knows them, and of all."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from replay import Replayed

from forebay.executors.judging.evidence.gate_evidence import FigureNumbers, WindowFigures
from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.losses import estimate_losses
from forebay.mixture.metrics.probabilities import calibration, normalised_entropy

HALVES = 2


class Run(NamedTuple):
    """What variants did in one regime with one seed; `columns` are their names.

    completeness: of the stream's positives, those known. windows: figures of each judged one, see
    `FigureNumbers`; None with one class only. halves: of each window and half of its events, the
    pairs of a positive and a negative and then the AUC of each variant. cpu_seconds: of scoring
    and learning.
    """

    regime: str
    seed: int
    completeness: float
    columns: list[str]
    windows: list[dict[str, Any] | None]
    halves: list[list[list[float]]]
    normalised_entropy: dict[str, float]
    calibration: dict[str, float]
    pauses: list[tuple[str, float, float]]
    cpu_seconds: float

    def figures(self) -> list[WindowFigures]:
        """Figures of the windows, all of whose labels are there."""
        found = []
        for number, numbers in enumerate(self.windows):
            known = None if numbers is None else FigureNumbers.model_validate(numbers)
            found.append(
                WindowFigures(
                    window=str(number),
                    columns=tuple(self.columns),
                    all_here=True,
                    auc=None if known is None else known.auc(),
                    losses=None if known is None else known.loss(),
                    positives=0 if known is None else known.positives,
                    expected=np.array([] if known is None else known.expected),
                )
            )
        return found

    @property
    def auc(self) -> dict[str, float]:
        """Pooled over the windows, so that a base rate that moves cannot count."""
        pooled = pool(one.auc for one in self.figures())
        assert pooled is not None
        return dict(zip(self.columns, pooled.values.tolist(), strict=True))

    def auc_of_half(self, half: int, since: int = 0) -> dict[str, float]:
        """The same of one half of the events, in windows from `since` on."""
        parts = np.array([each[half] for each in self.halves[since:]])
        values = np.average(parts[:, 1:], axis=0, weights=parts[:, 0])
        return dict(zip(self.columns, values.tolist(), strict=True))


def figures_of(regime: str, seed: int, found: Replayed, completeness: float) -> Run:
    """Judge what was answered by the complete labels; towers that do not answer are left out."""
    places = [at for at, name in enumerate(found.columns) if "/" not in name]
    columns = [found.columns[at] for at in places]
    scores, converted = found.scores[:, places], found.converted
    windows, halves = [], []
    for rows in _windows(found.windows):
        windows.append(_numbers(converted[rows], scores[rows]))
        parts = [rows[half::HALVES] for half in range(HALVES)]
        halves.append([_half(converted[part], scores[part]) for part in parts])
    by_column = list(zip(columns, scores.T, strict=True))
    return Run(
        regime=regime,
        seed=seed,
        completeness=completeness,
        columns=columns,
        windows=windows,
        halves=halves,
        normalised_entropy={name: normalised_entropy(converted, p) or 0.0 for name, p in by_column},
        calibration={name: calibration(converted, p) or 0.0 for name, p in by_column},
        pauses=found.pauses,
        cpu_seconds=found.cpu_seconds,
    )


def pooled_auc(found: Replayed, rows: npt.NDArray[np.bool_] | None = None) -> AucEstimate:
    """AUCs over windows: only rows of one window are compared, so that no base rate counts.

    Raises:
        SystemExit: when every window has labels of one class only.
    """
    chosen = np.flatnonzero(np.ones(len(found.windows), np.bool_) if rows is None else rows)
    pooled = pool(
        estimate_auc(found.converted[chosen[of]], found.scores[chosen[of]])
        for of in _windows(found.windows[chosen])
    )
    if pooled is None:
        raise SystemExit("every window has labels of one class only")
    return pooled


def _windows(windows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    """Rows of each window; windows ascend."""
    edges = np.flatnonzero(np.diff(windows, prepend=-1, append=-1))
    return [np.arange(first, last) for first, last in itertools.pairwise(edges)]


def _numbers(
    converted: npt.NDArray[np.bool_], scores: npt.NDArray[np.float32]
) -> dict[str, Any] | None:
    auc, losses = estimate_auc(converted, scores), estimate_losses(converted, scores)
    if auc is None or losses is None:
        return None
    expected = scores.sum(axis=0, dtype=np.float64)
    return FigureNumbers.of(auc, losses, expected).model_dump()


def _half(converted: npt.NDArray[np.bool_], scores: npt.NDArray[np.float32]) -> list[float]:
    auc = estimate_auc(converted, scores)
    if auc is None:
        return [0.0, *[0.5] * scores.shape[1]]
    return [float(auc.pairs), *auc.values.tolist()]
