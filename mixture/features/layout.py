"""FeatureLayout: the place of each feature in a minibatch, derived from the declaration alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from forebay.config.checks.column_fit import feature_misfits
from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.features import FeatureSpec, NumericFeature, cardinality, feature_columns
from forebay.config.specs.sources import LIST_ITEMS, ColumnType
from forebay.errors import ConfigError
from forebay.system.message import Message


class IdColumn(Message):
    """An id feature: ids are 0 (null) to cardinality - 1, each with a row of `dimension` floats."""

    name: str
    cardinality: int
    dimension: int


@dataclass(frozen=True)
class FeatureLayout:
    """Features in minibatch order: dense, then ids, then lists.

    specs: the declaration of each feature by name. types: the type of each column that a feature
    reads, by name; these are the inputs of the SavedModel. stored_columns: what must be read from
    storage: the columns of features, labels and event identity. further_labels: names of the labels
    after the first.
    """

    dense: tuple[str, ...]
    ids: tuple[IdColumn, ...]
    lists: tuple[IdColumn, ...]
    specs: Mapping[str, FeatureSpec]
    types: Mapping[str, ColumnType]
    stored_columns: tuple[str, ...]
    further_labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: DatasetSpec, columns: Mapping[str, ColumnType]) -> Self:
        """Lay out the features of a dataset whose sources declare `columns`.

        Raises:
            ConfigError: naming every feature that does not fit the types of its columns.
        """
        if problems := list(_problems(dataset, columns)):
            raise ConfigError("\n".join(problems))
        specs = dataset.features
        dense = [name for name, spec in specs.items() if isinstance(spec, NumericFeature)]
        listed = [n for n, s in specs.items() if n not in dense and _is_list(n, s, columns)]
        single = [name for name in specs if name not in dense and name not in listed]
        read = [c for name, spec in specs.items() for c in feature_columns(name, spec)]
        answers = [label.column for label in dataset.targets.values()]
        stored = dict.fromkeys([*read, *answers, *dataset.event_id_columns])
        return cls(
            dense=tuple(dense),
            ids=tuple(_id_column(name, specs[name]) for name in single),
            lists=tuple(_id_column(name, specs[name]) for name in listed),
            specs=specs,
            types={column: columns[column] for column in dict.fromkeys(read)},
            stored_columns=tuple(stored),
            further_labels=tuple(dataset.further_labels),
        )

    @property
    def names(self) -> list[str]:
        return [*self.dense, *(column.name for column in (*self.ids, *self.lists))]

    def columns_of(self, feature: str) -> list[str]:
        return feature_columns(feature, self.specs[feature])


def _is_list(name: str, spec: FeatureSpec, columns: Mapping[str, ColumnType]) -> bool:
    return columns[feature_columns(name, spec)[0]] in LIST_ITEMS


def _id_column(name: str, spec: FeatureSpec) -> IdColumn:
    ids = cardinality(spec)
    if ids is None or isinstance(spec, NumericFeature):
        raise TypeError(f"feature {name!r} is a number and has no ids")
    return IdColumn(name=name, cardinality=ids, dimension=spec.dimension)


def _problems(dataset: DatasetSpec, columns: Mapping[str, ColumnType]) -> Iterator[str]:
    for name, spec in dataset.features.items():
        for column in feature_columns(name, spec):
            if column not in columns:
                yield f"feature {name!r}: no source declares column {column!r}"
                continue
            for misfit in feature_misfits(spec, column, columns[column]):
                yield f"feature {name!r}: {misfit.message}"
    answers = [label.column for label in dataset.targets.values()]
    for column in dict.fromkeys([*dataset.event_id_columns, *answers]):
        if column not in columns:
            yield f"no source declares column {column!r}, which label or event_id names"
        elif columns[column] in LIST_ITEMS:
            yield f"column {column!r} holds lists: it can be neither a label nor event_id"
