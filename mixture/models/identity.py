"""What makes a checkpoint fit a learner: features, shapes and paradigms, not learning rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from forebay.config.specs.labels import LabelSpec, delay_of
from forebay.config.specs.models import ModelSpec
from forebay.config.specs.pipelines import TrainSpec
from forebay.errors import ConfigError
from forebay.mixture.features.layout import FeatureLayout
from forebay.system.message import Message

IDENTITY = "identity.json"
# Of a refusal: keys of one feature, and characters of one value.
_KEYS_MAX, _VALUE_MAX = 5, 60
_NOT = "not"  # what is said of a value that is not there


class ModelIdentity(Message):
    """Written beside a checkpoint; learners with the same identity can load each other's."""

    paradigms: list[str]
    sources: int
    shapes: dict[str, Any]
    features: dict[str, Any]

    @classmethod
    def of(
        cls,
        layout: FeatureLayout,
        model: ModelSpec,
        train: TrainSpec,
        source_count: int,
        labels: Mapping[str, LabelSpec],
    ) -> Self:
        mixture, paradigms = model.mixture, [each.paradigm for each in train.variants]
        shapes: dict[str, Any] = {"tower": list(model.tower.hidden)}
        if "mixture" in paradigms:
            shapes |= {
                "memory_tower": list(mixture.memory_tower.hidden),
                "adapt_tower": list(mixture.adapt_tower.hidden),
                "memory_output": mixture.memory_output,
                "separate embeddings": mixture.embeddings == "separate",
                "memory_inputs": mixture.memory_inputs,
                "memory_embeddings": mixture.memory_embeddings,
            }
        if any(each.delay == "head" for each in train.variants):
            shapes["delay_head"] = list(model.delay_head.hidden)
        if len(labels) > 1:
            shapes["labels"] = {
                name: [delay_of(label, each) for each in train.variants]
                for name, label in labels.items()
            }
        if train.seeds > 1:
            shapes["seeds"] = train.seeds
        features = {
            name: {
                "columns": {
                    column: str(layout.types[column]) for column in layout.columns_of(name)
                },
                **layout.specs[name].model_dump(mode="json"),
            }
            for name in layout.names
        }
        return cls(
            paradigms=train.paradigms, sources=source_count, shapes=shapes, features=features
        )

    def differences(self, found: ModelIdentity) -> list[str]:
        """What differs in another identity, which the text calls `there`."""
        said = []
        if self.paradigms != found.paradigms:
            said.append(f"paradigms {found.paradigms} there, {self.paradigms} here")
        if self.sources != found.sources:
            said.append(f"{found.sources} sources there, {self.sources} here")
        for what, here, there in (
            ("", self.shapes, found.shapes),
            ("feature ", self.features, found.features),
        ):
            said += [
                f"{what}{name}{_change(there.get(name, _NOT), here.get(name, _NOT))}"
                for name in {**there, **here}
                if there.get(name) != here.get(name)
            ]
        if not said and list(self.features) != list(found.features):
            said.append("the order of the features")
        return said

    def require(self, found: ModelIdentity) -> None:
        """Refuse a checkpoint of another model.

        Raises:
            ConfigError: naming what differs.
        """
        if differences := self.differences(found):
            raise ConfigError(
                f"the checkpoint is of another model: {'; '.join(differences)}. Undo the change,"
                " or train it from the first window on another line"
            )


def _change(there: object, here: object) -> str:
    """What follows the name of two values that differ: of mappings, the keys that do."""
    if not isinstance(there, dict) or not isinstance(here, dict):
        return f" {_brief(there)} there, {_brief(here)} here"
    leaves = list(_leaves("", there, here))
    said = [f"{path} {_brief(old)} there, {_brief(new)} here" for path, old, new in leaves]
    more = [f"and {len(said) - _KEYS_MAX} more"] * (len(said) > _KEYS_MAX)
    return ": " + ", ".join([*said[:_KEYS_MAX], *more])


def _leaves(
    path: str, there: dict[str, Any], here: dict[str, Any]
) -> Iterator[tuple[str, object, object]]:
    for key in {**there, **here}:
        old, new = there.get(key, _NOT), here.get(key, _NOT)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _leaves(f"{path}{key}.", old, new)
        elif old != new:
            yield f"{path}{key}", old, new


def _brief(value: object) -> str:
    text = "declared" if isinstance(value, dict) else "none" if value is None else str(value)
    return text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 1]}…"
