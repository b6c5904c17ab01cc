"""TowersLearner: all paradigms of a pipeline, trained side by side on the same minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from forebay.config.datasets import Feed
from forebay.config.models import ModelSpec, Paradigm
from forebay.errors import TrainingError
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.models.embeddings import stacks_of
from forebay.mixture.models.identity import ModelIdentity
from forebay.mixture.models.paradigms import make_paradigm
from forebay.mixture.models.saved_model import Exporter
from forebay.mixture.models.step import Counters, Function, learn_function, score_function
from forebay.mixture.row_sums import RowSums

IDENTITY = "identity.json"
VARIABLES = "variables"


class TowersLearner:
    """The learner of `kind: towers`."""

    def __init__(
        self,
        layout: FeatureLayout,
        model: ModelSpec,
        paradigms: Sequence[Paradigm],
        source_count: int,
    ) -> None:
        """Draw every paradigm's weights from the model's seed, all from the same."""
        self._layout = layout
        self._identity = ModelIdentity.of(layout, model, paradigms, source_count)
        self._stacks = stacks_of(layout)
        dense = len(layout.dense)
        self._models = [make_paradigm(name, dense, self._stacks, model) for name in paradigms]
        self._counters = Counters.of(len(paradigms), source_count)
        variables = self._counters._asdict()
        for one in self._models:
            variables |= {f"{one.name}_{name}": v for name, v in one.variables.items()}
        self._checkpoint = tf.train.Checkpoint(variables=variables)
        self._score = score_function(layout, self._stacks, self._models)
        self._learn: dict[tuple[Feed, tuple[bool, ...]], Function] = {}
        self._exporter = Exporter(layout, self._stacks, self._models[0])
        self._warm_start = False

    @property
    def paradigms(self) -> Sequence[str]:
        """The serving paradigm first."""
        return [one.name for one in self._models]

    def set_phase(self, *, warm_start: bool) -> None:
        """Say whether the next minibatches belong to the warm start."""
        self._warm_start = warm_start

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        """Probabilities float32[N, paradigms] as the models are now."""
        probabilities = self._score(minibatch.dense, minibatch.ids, minibatch.lists)
        return np.asarray(probabilities.numpy(), np.float32)

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """One step of every paradigm that takes this feed, and of the row sums.

        Raises:
            TrainingError: for a feature that is not finite, before anything moved; or for such a
                loss or gradient. The variables are then of no use: the process has to end, and
                the next one starts at the last sealed checkpoint.
        """
        if not len(minibatch):
            return {}
        self._require_finite(minibatch)
        feed = minibatch.feed
        takes = tuple(each.takes(feed, warm_start=self._warm_start) for each in self._models)
        names = [each.name for each, taken in zip(self._models, takes, strict=True) if taken]
        step = self._learn.get((feed, takes))
        if step is None:
            step = learn_function(
                self._layout, self._stacks, self._models, takes, feed, self._counters
            )
            self._learn[feed, takes] = step
        found = step(
            minibatch.dense,
            minibatch.ids,
            minibatch.lists,
            minibatch.labels,
            minibatch.sources,
            minibatch.row_ids,
        ).numpy()
        if not np.isfinite(found).all():
            bad = [name for name, loss in zip(names, found, strict=True) if not np.isfinite(loss)]
            raise TrainingError(
                f"the loss of paradigm {', '.join(bad)} is not finite at step"
                f" {int(self._counters.steps.numpy())} ({feed} minibatch)"
            )
        return dict(zip(names, found.tolist(), strict=True))

    def seen(self) -> list[RowSums]:
        """Row sums from the model's own variable, by source index."""
        return [
            RowSums(rows=rows, sum=total, sum_of_squares=squares)
            for rows, total, squares in self._counters.row_sums.numpy().tolist()
        ]

    def learnt(self) -> dict[str, list[int]]:
        """Rows that each paradigm has learnt from, by source index."""
        return dict(zip(self.paradigms, self._counters.learnt.numpy().tolist(), strict=True))

    def save(self, directory: Path) -> None:
        """Write every variable, optimiser and row sums included, and what model they are of."""
        self._checkpoint.write(str(directory / VARIABLES))
        (directory / IDENTITY).write_text(self._identity.model_dump_json(indent=1))

    def load(self, directory: Path) -> None:
        """Take back what `save` wrote.

        Raises:
            ConfigError: when it is of another model.
        """
        found = ModelIdentity.model_validate_json((directory / IDENTITY).read_text())
        self._identity.require(found)
        self._checkpoint.read(str(directory / VARIABLES)).assert_consumed()

    def export(self, directory: Path) -> None:
        """Write a SavedModel of the serving paradigm that takes raw columns."""
        self._exporter.write(directory)

    def _require_finite(self, minibatch: Minibatch) -> None:
        finite = np.asarray(np.isfinite(minibatch.dense).all(axis=0))
        if not finite.all():
            names = [
                name for name, fine in zip(self._layout.dense, finite, strict=True) if not fine
            ]
            raise TrainingError(
                f"feature {', '.join(names)} is not finite in a {minibatch.feed} minibatch after"
                f" step {int(self._counters.steps.numpy())}: repair the rows, or use bucketise"
            )
