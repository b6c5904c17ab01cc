"""Export of the variant that serves: a SavedModel from raw columns to a probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tensorflow as tf

from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.tensors import RawEncoder, input_spec
from forebay.mixture.models.layers.embeddings import Stack, locate
from forebay.mixture.models.paradigm import Inputs
from forebay.mixture.models.seed_models import SeedModels
from forebay.mixture.models.step import AUTOGRAPH
from forebay.mixture.serving.served_features import FEATURES, SIGNATURE, ServedFeatures


@dataclass(eq=False)
class Exporter:
    """Writes SavedModels of one learner: a variant's graph is traced once, at its first export.

    labels: the names of several, or a single "".
    """

    layout: FeatureLayout
    stacks: Sequence[Stack]
    models: SeedModels
    labels: Sequence[str]
    _built: dict[int, tuple[tf.Module, ServedFeatures]] = field(default_factory=dict)

    def write(self, directory: Path, place: int) -> None:
        if place not in self._built:
            self._built[place] = self._build(place)
        module, features = self._built[place]
        tf.saved_model.save(module, str(directory), signatures={SIGNATURE: module.serve})
        (directory / FEATURES).write_text(features.model_dump_json(indent=1))

    def _build(self, place: int) -> tuple[tf.Module, ServedFeatures]:
        features = ServedFeatures.of(self.models.models[place].name, self.layout.types, [])
        encoder = RawEncoder(self.layout)

        def serve(**raw: tf.Tensor) -> dict[str, tf.Tensor]:
            columns = {name: raw[column.input] for name, column in features.columns.items()}
            dense, ids, lists = encoder.encode(columns)
            inputs = Inputs(dense, locate(self.stacks, ids, lists, distinct=False))
            logits = self.models.answers(inputs, [place])[0]
            return self._outputs({name: tf.sigmoid(logit) for name, logit in logits.items()})

        specs = [input_spec(column.type, column.input) for column in features.columns.values()]
        module = tf.Module()
        # Variables and tables that the function captures are saved only if they are tracked.
        module.served = self.models.served(place)
        module.vocabularies = encoder.vocabularies
        module.serve = tf.function(serve, autograph=AUTOGRAPH).get_concrete_function(
            **{spec.name: spec for spec in specs}
        )
        outputs = list(module.serve.structured_outputs)
        return module, features.model_copy(update={"outputs": outputs})

    def _outputs(self, answers: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The signature's outputs: `score`, or for several labels, a score by each label's name.

        A further tower is called `memory`, or `memory_of_click` for several labels.
        """
        if len(self.labels) == 1:
            return dict(answers)
        return {
            label if name == "score" else f"{name}_of_{label}": values[:, at]
            for name, values in answers.items()
            for at, label in enumerate(self.labels)
        }
