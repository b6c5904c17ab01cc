"""What a dataset refers to, as far as its file is usable: one mistake does not hide another.

Source and column names are checked in the same pass as everything else `check` looks at. In a file
with structural problems, the parts without one are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from forebay.config.checks.loaded import Loaded
from forebay.config.specs.features import FeatureSpec
from forebay.config.specs.labels import LabelSpec, NamedLabelSpec
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.yaml.positions import KeyPath

Part = TypeVar("Part")
_TEXTS: TypeAdapter[Sequence[str]] = TypeAdapter(list[str])
_EVENT_ID: TypeAdapter[str | list[str]] = TypeAdapter(str | list[str])
_LABEL = TypeAdapter(LabelSpec)
_NAMED_LABEL: TypeAdapter[LabelSpec] = TypeAdapter(NamedLabelSpec)
_FEATURE: TypeAdapter[FeatureSpec] = TypeAdapter(
    Annotated[FeatureSpec, Field(discriminator="encode")]
)


@dataclass(frozen=True)
class DatasetParts:
    """References of one dataset.

    event_id: its columns as written; None if they cannot be used. targets, features: by name; a
    single label has the name "". slices: names of features. streams: names of sources by stream.
    offsets: of the streams; empty if the file has a structural problem.
    """

    event_id: str | list[str] | None = None
    targets: Mapping[str, LabelSpec] = field(default_factory=dict)
    features: Mapping[str, FeatureSpec] = field(default_factory=dict)
    slices: Sequence[str] = ()
    streams: Mapping[str, Sequence[str]] = field(default_factory=dict)
    offsets: Mapping[str, timedelta] = field(default_factory=dict)

    @property
    def source_names(self) -> list[str]:
        """Each source once, in order."""
        return list(dict.fromkeys(name for names in self.streams.values() for name in names))


def dataset_parts(pipeline: Loaded[PipelineSpec]) -> DatasetParts:
    """All parts of a pipeline; if its file has structural problems, the parts without one.

    Keys that are only misspelled are no such problem: their parts are taken as they were meant.
    """
    if pipeline.repaired is None:
        return _Reader(pipeline).parts()
    dataset = pipeline.repaired.dataset
    return DatasetParts(
        event_id=dataset.event_id,
        targets=dataset.targets,
        features=dataset.features,
        slices=dataset.slices,
        streams={name: stream.sources for name, stream in dataset.streams.items()},
        offsets={name: stream.offset for name, stream in dataset.streams.items()},
    )


class _Reader:
    def __init__(self, pipeline: Loaded[PipelineSpec]) -> None:
        value = pipeline.document.value
        dataset = value.get("dataset") if isinstance(value, dict) else None
        self._dataset: dict[str, Any] = dataset if isinstance(dataset, dict) else {}
        wrong = {(problem.line, problem.column) for problem in pipeline.problems}
        # Paths of everything that has a problem, and of everything that contains it.
        self._wrong: set[KeyPath] = {
            path[:end]
            for places in (pipeline.document.keys, pipeline.document.values)
            for path, place in places.items()
            if tuple(place) in wrong
            for end in range(1, len(path) + 1)
        }

    def parts(self) -> DatasetParts:
        targets: Mapping[str, LabelSpec] = self._each("named_labels", (), _NAMED_LABEL)
        if "label" in self._dataset:
            label = self._part(("label",), self._dataset["label"], _LABEL)
            targets = {} if label is None else {"": label}
        return DatasetParts(
            event_id=self._part(("event_id",), self._dataset.get("event_id"), _EVENT_ID),
            targets=targets,
            features=self._each("features", (), _FEATURE),
            streams=self._each("streams", ("sources",), _TEXTS),
        )

    def _each(self, key: str, inside: KeyPath, reader: TypeAdapter[Part]) -> dict[str, Part]:
        """The parts below a key by name, or the value at `inside` of each."""
        values = self._dataset.get(key)
        found = {}
        for name, value in values.items() if isinstance(values, dict) else ():
            for step in inside:
                value = value.get(step) if isinstance(value, dict) else None  # noqa: PLW2901
            found[name] = self._part((key, name, *inside), value, reader)
        return {name: part for name, part in found.items() if part is not None}

    def _part(self, path: KeyPath, value: object, reader: TypeAdapter[Part]) -> Part | None:
        """One part; None if it has a problem, which may be a misspelt name."""
        if value is None or ("dataset", *path) in self._wrong:
            return None
        try:
            return reader.validate_python(value)
        except ValidationError:
            return None  # its problem has been reported already
