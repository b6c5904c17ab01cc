"""Figures of event scores: for one window, by answer, source and slice, and pooled over windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from forebay.config.specs.features import BucketiseFeature, FeatureSpec, VocabularyFeature
from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.judging.event_rows import EventRows
from forebay.executors.judging.evidence.gate_evidence import WindowFigures, counted_windows
from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.calibration_curve import CalibrationCurve, added
from forebay.mixture.metrics.figures import (
    EventBlock,
    EventScores,
    Interval,
    PooledAnswer,
    PooledEvent,
    PooledPart,
    PooledParts,
    Unjudged,
)
from forebay.mixture.metrics.losses import estimate_losses, pool_losses
from forebay.mixture.metrics.probabilities import (
    calibration,
    log_loss,
    mean_of_all,
    normalised_entropy,
)
from forebay.mixture.metrics.verdict import one_class_words, partial_words
from forebay.mixture.score_columns import over_seeds

MISSING, OTHERS, REST = "missing", "other values", "all others"
_QUOTE = "'"


def slice_name(feature: FeatureSpec, value: int) -> str:
    """The value that an id (see `features`) stands for; for a hash only the bucket is known.

    No two ids of a feature share a name: a value that reads like one of the fixed names is quoted.
    """
    if value == 0:
        return MISSING
    if isinstance(feature, VocabularyFeature):
        return OTHERS if value == 1 else _plain(str(feature.values[value - 2]))
    if isinstance(feature, BucketiseFeature):
        return _range(feature.boundaries, value - 1)
    return f"bucket {value}"


def _plain(value: str) -> str:
    meant = value in {MISSING, OTHERS, REST} or value.startswith(_QUOTE)
    return f"{_QUOTE}{value}{_QUOTE}" if meant else value


def _range(boundaries: list[float], below: int) -> str:
    """below: how many boundaries are at or below the value."""
    if below == 0:
        return f"below {_number(boundaries[0])}"
    if below == len(boundaries):
        return f"{_number(boundaries[-1])} or more"
    return f"{_number(boundaries[below - 1])} to {_number(boundaries[below])}"


def _number(value: float) -> str:
    """The shortest text that tells it from every other number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value).removesuffix(".0")


Mask = npt.NDArray[np.bool_]
# For each sliced feature, the values with the most rows; the others share one slice.
SLICE_VALUES_MAX = 20


class Part(NamedTuple):
    """Rows of one source, or of one value of a sliced feature.

    auc: None with one class only. answers: figures of each variant and tower.
    """

    auc: AucEstimate | None
    rows: int
    positives: int
    answers: dict[str, EventScores]


@dataclass(frozen=True)
class EventFigures(WindowFigures):
    """Figures of one window's judged rows, and what pooled figures take from them.

    curves: of each column. block: the window's `event` in a summary. parts: by source, at "", and
    by each value of a sliced feature.
    """

    curves: tuple[CalibrationCurve, ...]
    block: EventBlock
    parts: dict[str, dict[str, Part]]

    @classmethod
    def of(cls, rows: EventRows, pipeline: PipelineSpec | None = None) -> EventFigures:
        """Judge the rows of one window. pipeline: theirs; without it there are no parts."""
        auc = estimate_auc(rows.labels, rows.scores) if rows.columns else None
        parts: dict[str, dict[str, Part]] = {}
        if pipeline is not None:
            parts = {"": _parts(rows, _by_source(rows, pipeline.use_names))}
            for feature, ids in rows.slices.items():
                if feature in pipeline.dataset.features:  # it may have been renamed since
                    parts[feature] = _parts(rows, _values(pipeline, feature, ids))
        answers = {
            of: {name: part.answers for name, part in each.items()} for of, each in parts.items()
        }
        return cls(
            window=rows.window,
            columns=rows.columns,
            all_here=rows.all_here,
            auc=auc,
            losses=estimate_losses(rows.labels, rows.scores) if rows.columns else None,
            positives=int((rows.labels > 0.5).sum()),
            expected=rows.scores.sum(axis=0, dtype=np.float64),
            curves=tuple(CalibrationCurve.of(rows.labels, one) for one in rows.scores.T),
            block=EventBlock(
                rows=rows.rows,
                judged=rows.judged,
                unjudged=Unjudged(gone=rows.gone, before=rows.before, left_out=rows.left_out),
                complete=rows.all_here,
                answers=_answers(rows, np.ones(rows.judged, np.bool_), auc, rows.rows),
                sources=answers.pop("", {}),
                slices=answers,
            ),
            parts=parts,
        )


def pooled_event(windows: Iterable[EventFigures]) -> PooledEvent:
    """Over windows with all their labels and both classes."""
    counted = counted_windows(windows)
    auc = pool(one.auc for one in counted)
    losses = pool_losses(one.losses for one in counted)
    if auc is None or losses is None:
        return PooledEvent()
    columns = counted[0].columns
    positives = sum(one.positives for one in counted)
    expected = np.sum([one.expected for one in counted], axis=0)
    return PooledEvent(
        windows=len(counted),
        judged=int(losses.rows),
        answers={
            column.name: PooledAnswer(
                auc=auc.interval(places),
                log_loss=losses.interval(places),
                normalised_entropy=losses.normalised().interval(places),
                calibration=float(expected[list(places)].mean()) / positives,
                positives=int(positives),
                curve=added(one.curves[places[0]] for one in counted).points(),
            )
            for column, places in over_seeds(columns).items()
        },
        sources=_pooled_parts(columns, _by_name(counted, "")),
        slices={
            feature: _pooled_parts(columns, _bounded(_by_name(counted, feature)))
            for feature in dict.fromkeys(name for one in counted for name in one.parts if name)
        },
    )


def _parts(rows: EventRows, masks: Iterable[tuple[str, Mask]]) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for name, mask in masks:
        labels = rows.labels[mask]
        auc = estimate_auc(labels, rows.scores[mask]) if rows.columns else None
        answers = _answers(rows, mask, auc, None)
        found[name] = Part(auc, len(labels), int((labels > 0.5).sum()), answers)
    return found


def _by_name(windows: Iterable[EventFigures], of: str) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for window in windows:
        for name, part in window.parts.get(of, {}).items():
            found.setdefault(name, []).append(part)
    return found


def _pooled_parts(columns: Sequence[str], parts: Mapping[str, Sequence[Part]]) -> PooledParts:
    """AUCs of each part over windows, by answer; none for a part with one class in every window."""
    pooled: PooledParts = {}
    for name, several in parts.items():
        auc = pool(part.auc for part in several)
        rows = sum(part.rows for part in several)
        positives = sum(part.positives for part in several)
        pooled[name] = {
            column.name: PooledPart(
                auc=None if auc is None else auc.interval(places),
                rows=rows,
                positives=positives,
                words=one_class_words(positives, rows) if auc is None else "",
            )
            for column, places in over_seeds(columns).items()
        }
    return pooled


def _bounded(parts: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """The parts with the most rows, and the rest as one: each window may have different ones."""
    by_rows = sorted(parts, key=lambda name: -sum(part.rows for part in parts[name]))
    shown = [name for name in by_rows if name != REST][:SLICE_VALUES_MAX]
    bounded = {name: several for name, several in parts.items() if name in shown}
    rest = [part for name, several in parts.items() if name not in shown for part in several]
    return bounded | ({REST: rest} if rest else {})


def _answers(
    rows: EventRows, mask: Mask, auc: AucEstimate | None, of_rows: int | None
) -> dict[str, EventScores]:
    """Figures of each answer, means over its seeds. of_rows: the rows in all, where known."""
    labels, scores = rows.labels[mask], rows.scores[mask]
    positives = int((labels > 0.5).sum())
    found: dict[str, EventScores] = {}
    for column, places in over_seeds(rows.columns).items():
        words = one_class_words(positives, len(labels)) if auc is None else ""
        if not rows.all_here:
            so_far = f"{words}, so far" if words and len(labels) else ""
            value = auc.interval(places).value if auc else None
            words = so_far or partial_words(value, len(labels), of_rows)
        found[column.name] = EventScores(
            **auc_figures("auc", auc, places),
            **label_figures(labels, scores[:, list(places)]),
            rows=len(labels),
            positives=positives,
            seeds=len(places),
            words=words,
        )
    return found


def auc_figures(
    name: str, auc: AucEstimate | None, places: Sequence[int]
) -> dict[str, float | Interval | None]:
    """The figure under `name`, its 95% interval under `<name>_interval`."""
    if auc is None:
        return {name: None, f"{name}_interval": None}
    estimate = auc.interval(places)
    return {name: estimate.value, f"{name}_interval": (estimate.low, estimate.high)}


def label_figures(
    labels: npt.NDArray[np.float32], scores: npt.NDArray[np.float32], suffix: str = ""
) -> dict[str, float | None]:
    """How well scores float32[N, C] fit the labels, in the mean of the C columns."""
    figures = (log_loss, normalised_entropy, calibration)
    return {
        f"{figure.__name__}{suffix}": mean_of_all(figure(labels, one) for one in scores.T)
        for figure in figures
    }


def _by_source(rows: EventRows, names: Sequence[str]) -> Iterator[tuple[str, Mask]]:
    for index in np.unique(rows.sources).tolist():
        yield names[index], rows.sources == index


def _values(
    pipeline: PipelineSpec, feature: str, ids: npt.NDArray[np.int64]
) -> Iterator[tuple[str, Mask]]:
    """Values with the most rows first, on ties the smaller id; the rest together."""
    values, counts = np.unique(ids, return_counts=True)
    order = values[np.argsort(-counts, kind="stable")]
    spec = pipeline.dataset.features[feature]
    for value in order[:SLICE_VALUES_MAX].tolist():
        yield slice_name(spec, value), ids == value
    if len(order) > SLICE_VALUES_MAX:
        yield REST, np.isin(ids, order[SLICE_VALUES_MAX:])
