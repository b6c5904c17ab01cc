"""Figures of probabilities against labels: log loss, normalised entropy, calibration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.floating[Any]] | npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]]
Scores = npt.NDArray[np.floating[Any]]

_SMALLEST_PROBABILITY = 1e-7


def log_loss(labels: Labels, probabilities: Scores) -> float | None:
    """Mean negative log likelihood in nats; None without rows."""
    if len(labels) == 0:
        return None
    return float(row_losses(labels, probabilities).mean())


def row_losses(labels: Labels, probabilities: Scores) -> npt.NDArray[np.float64]:
    """Negative log likelihood of each row in nats; no probability counts as certain."""
    truth = np.asarray(labels, dtype=np.float64) > 0.5
    p = np.asarray(probabilities, dtype=np.float64)
    p = np.clip(p, _SMALLEST_PROBABILITY, 1.0 - _SMALLEST_PROBABILITY)
    return np.asarray(-np.where(truth, np.log(p), np.log1p(-p)), dtype=np.float64)


def normalised_entropy(labels: Labels, probabilities: Scores) -> float | None:
    """Log loss divided by that of always answering the base rate; None with one class only."""
    loss = log_loss(labels, probabilities)
    if loss is None:
        return None
    rate = float((np.asarray(labels, dtype=np.float64) > 0.5).mean())
    if rate in (0.0, 1.0):
        return None
    return loss / -(rate * float(np.log(rate)) + (1.0 - rate) * float(np.log1p(-rate)))


def calibration(labels: Labels, probabilities: Scores) -> float | None:
    """Expected positives divided by positives; None without a positive."""
    positives = int((np.asarray(labels, dtype=np.float64) > 0.5).sum())
    if positives == 0:
        return None
    return float(np.asarray(probabilities, dtype=np.float64).sum()) / positives


def mean_of_all(values: Iterable[float | None]) -> float | None:
    """Mean of one figure over seeds; None if it does not exist for all of them."""
    found = list(values)
    present = [value for value in found if value is not None]
    return sum(present) / len(found) if found and len(present) == len(found) else None
