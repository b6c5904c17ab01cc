"""Whether an exported model answers a raw row as the trained one answers the same row encoded.

The trained model sees numbers that data executors made (`features.encode`), the exported one makes
them itself (`features.tensors`): one definition, implemented twice. Rows made up from the
declaration go both ways, through the same code that `forebay score` runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.features import (
    BucketiseFeature,
    CrossFeature,
    FeatureSpec,
    NumericFeature,
    VocabularyFeature,
)
from forebay.config.specs.sources import LIST_ITEMS, ColumnType, SourceSpec
from forebay.datatasks.sources.common.contract.base import ARROW_TYPES
from forebay.errors import ExportError, TrainingError
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.features.values import HOUR
from forebay.mixture.learner import Learner
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.score_columns import ScoreColumn
from forebay.mixture.serving.raw_rows import EPOCH, Row
from forebay.mixture.serving.scoring import ServedModel

SCORE = "score"  # the signature's name for the answer to a single label
TOLERANCE = 1e-5
CHECKED_ROWS = 64
_SEED = 20_130_601
_NULL_SHARE = 0.15
_ITEMS_MAX = 3
# Encoded numbers beyond this only increase rounding: no part of the definition depends on them.
_NUMBER_MAX = 8.0
_Value = str | bool | int | float
# By type: values that any column may hold. Timestamps are microseconds since 1970.
_COMMON: Mapping[ColumnType, Sequence[_Value]] = {
    ColumnType.STRING: ("", "a", "never seen before", "Überraschung ☂", " spaced ", "0"),
    ColumnType.BOOL: (True, False),
    ColumnType.INT: (0, 1, -1, 7, 2**62, -(2**62)),
    ColumnType.FLOAT: (0.0, 1.0, -1.5, 1e-3, 250.25),
    # 25 hours apart from a Monday's midnight: every hour and every weekday.
    ColumnType.TIMESTAMP: (0, -1, *(1_704_067_200_000_000 + n * 25 * HOUR for n in range(24))),
}


def made_up_rows(layout: FeatureLayout, count: int = CHECKED_ROWS) -> list[dict[str, object]]:
    """Rows for the columns that features read; the same declaration gives the same rows.

    The first is null throughout. The others mix nulls, values that any column may hold, values
    that a feature names (vocabularies, boundaries, the middle of a scale), and lists of those.
    Timestamps are microseconds since 1970.
    """
    random = np.random.default_rng(_SEED)
    values = {column: _in_turn(random, _values_of(layout, column)) for column in layout.types}
    rows: list[dict[str, object]] = [dict.fromkeys(layout.types)]
    while len(rows) < count:
        rows.append(
            {column: _drawn(random, kind, values[column]) for column, kind in layout.types.items()}
        )
    return rows


def check_served(
    directory: Path,
    learner: Learner,
    dataset: DatasetSpec,
    source: SourceSpec,
    layout: FeatureLayout,
    threads: int,
    variant: str | None = None,
) -> float:
    """Compare a SavedModel with the learner that it was exported from.

    source: any of the dataset's; types agree between them. threads: for TensorFlow, if it is not
    running yet. variant: the one that was exported; None for the declared one.

    Returns:
        The largest difference between two probabilities.

    Raises:
        TrainingError: when the learner's own answer is not finite.
        ExportError: when the exported model answers differently.
    """
    rows = made_up_rows(layout)
    trained = learner.score(_minibatch(rows, dataset, source, layout))
    answers = {
        label or SCORE: trained[:, _place(learner, variant, dataset.label_key(label))]
        for label in dataset.targets
    }
    if not all(np.isfinite(one).all() for one in answers.values()):
        raise TrainingError("the trained model's probabilities are not finite")
    types = layout.types
    written = [{name: _json(types[name], value) for name, value in row.items()} for row in rows]
    served = ServedModel(directory).score(written, threads)
    return max(
        _difference(directory, rows, one, np.array([row[output] for row in served]))
        for output, one in answers.items()
    )


def _place(learner: Learner, variant: str | None, label: str) -> int:
    """The column of scores that holds a variant's answer to a label, see `label_key`."""
    if variant is None and not label:
        return 0
    answering = ScoreColumn(variant or learner.paradigms[0], label=label)
    return list(learner.columns).index(answering)


def _difference(
    directory: Path,
    rows: Sequence[Row],
    trained: npt.NDArray[np.float32],
    served: npt.NDArray[np.float64],
) -> float:
    differences = np.abs(served - trained)
    worst = int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))
    if not differences[worst] <= TOLERANCE:
        raise ExportError(
            f"exported model {directory} cannot serve: it gives {served[worst]:.7f} where "
            f"the trained model gives {trained[worst]:.7f}, for the row {rows[worst]}. It is not "
            "published, and is kept there for inspection"
        )
    return float(differences[worst])


def _minibatch(
    rows: Sequence[Row], dataset: DatasetSpec, source: SourceSpec, layout: FeatureLayout
) -> Minibatch:
    """The rows as a data executor encodes them; label and event identity are null."""
    arrays = {
        column: pa.array([row.get(column) for row in rows], ARROW_TYPES[source.columns[column]])
        for column in layout.stored_columns
    }
    batch = pa.RecordBatch.from_pydict(arrays)
    encoded = Encoder(dataset, source, layout).encode(batch, np.arange(len(rows)))
    return to_minibatch(encoded.batch, [(0, len(rows))], "stream", layout)


def _json(kind: ColumnType, value: object) -> object:
    if kind is ColumnType.TIMESTAMP and isinstance(value, int):
        return (EPOCH + timedelta(microseconds=value)).isoformat()
    return value


def _in_turn(random: np.random.Generator, values: Sequence[object]) -> Iterator[object]:
    """All values in a random order, repeated forever; nulls if there are none."""
    order = random.permutation(len(values)).tolist()
    return cycle([values[place] for place in order] or [None])


def _values_of(layout: FeatureLayout, column: str) -> list[_Value | None]:
    kind = LIST_ITEMS.get(layout.types[column], layout.types[column])
    specs = [spec for name, spec in layout.specs.items() if column in layout.columns_of(name)]
    found = [*_COMMON[kind], *(value for spec in specs for value in _named(spec, kind))]
    numeric = [s for s in specs if isinstance(s, NumericFeature) and s.part is None]
    return [value for value in found if all(_moderate(value, spec) for spec in numeric)]


def _named(spec: FeatureSpec, kind: ColumnType) -> Iterator[_Value | None]:
    if isinstance(spec, CrossFeature) or spec.part is not None:
        return
    if isinstance(spec, VocabularyFeature):
        yield from (_typed(value, kind) for value in spec.values)
    elif isinstance(spec, BucketiseFeature):
        yield from (_typed(boundary, kind) for boundary in spec.boundaries)
    elif isinstance(spec, NumericFeature):
        for scales in (-2.0, -1.0, 0.0, 0.5, 2.0):
            middle = spec.mean + scales * spec.scale
            inverse = math.expm1(min(middle, 700.0)) if spec.transform == "log1p" else middle
            yield _typed(inverse, kind)


def _typed(value: str | float, kind: ColumnType) -> _Value | None:
    """A value from a declaration in the column's type; null if that type cannot hold it."""
    if kind is ColumnType.STRING:
        return str(value)
    if kind is ColumnType.BOOL:
        return {"true": True, "false": False}.get(str(value).lower())
    if kind is ColumnType.INT:
        return round(float(value)) if abs(float(value)) < 2**62 else None
    return float(value)


def _moderate(value: _Value | None, spec: NumericFeature) -> bool:
    if value is None:
        return True
    number = math.log1p(max(float(value), 0.0)) if spec.transform == "log1p" else float(value)
    return abs(number - spec.mean) <= _NUMBER_MAX * abs(spec.scale)


def _drawn(random: np.random.Generator, kind: ColumnType, values: Iterator[object]) -> object:
    if kind in LIST_ITEMS:
        count = int(random.integers(0, _ITEMS_MAX + 1))
        return [_drawn(random, LIST_ITEMS[kind], values) for _ in range(count)]
    return None if random.random() < _NULL_SHARE else next(values)
