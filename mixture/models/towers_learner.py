"""TowersLearner: all paradigms of a pipeline, trained side by side on the same minibatches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import Phase
from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.models import ModelSpec
from forebay.config.specs.pipelines import TrainSpec
from forebay.errors import ConfigError, TrainingError
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.label_guard import GuardState
from forebay.mixture.left_out import NOT_KNOWN, LeftOut
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.models.identity import IDENTITY, ModelIdentity
from forebay.mixture.models.layers.embeddings import stacks_of
from forebay.mixture.models.paradigm import Parts
from forebay.mixture.models.saved_model import Exporter
from forebay.mixture.models.seed_models import SeedModels
from forebay.mixture.models.step import Counters, Function, learn_function, score_function
from forebay.mixture.row_sums import RowSums
from forebay.mixture.score_columns import ScoreColumn

_KEY = "variables/{}/.ATTRIBUTES/VARIABLE_VALUE"
VARIABLES = "variables"


class TowersLearner:
    """The learner of `kind: towers`."""

    def __init__(
        self,
        layout: FeatureLayout,
        model: ModelSpec,
        train: TrainSpec,
        source_count: int,
        labels: Mapping[str, LabelSpec],
    ) -> None:
        """Draw the weights of every seed. labels: see `DatasetSpec.targets`."""
        self._layout = layout
        self._labels = list(labels)
        self._identity = ModelIdentity.of(layout, model, train, source_count, labels)
        self._stacks = stacks_of(layout)
        self._seeds = [
            SeedModels(
                train.variants,
                labels,
                len(layout.dense),
                self._stacks,
                model.model_copy(update={"seed": model.seed + seed}),
                source_count,
                guard=train.guard,
            )
            for seed in range(train.seeds)
        ]
        first = self._seeds[0]
        self._models = first.models
        self.paradigms = [one.name for one in self._models]
        self.columns = [
            replace(column, label=label)
            for label in ["", *self._labels[1:]]
            for column in _columns(first, train.seeds)
        ]
        left_out = any(first.heads) or bool(first.guards)
        self._counters = Counters.of(
            len(self._models), source_count, len(labels), left_out=left_out
        )
        variables, resettable = self._counters.variables, self._counters.resettable
        for seed, models in enumerate(self._seeds):
            prefix = f"seed{seed}_" if seed else ""
            variables |= {f"{prefix}{name}": each for name, each in models.variables.items()}
            resettable |= {f"{prefix}{name}": each for name, each in models.resettable.items()}
        # The resettable ones count and watch, and the model is the same without them: a checkpoint
        # need not hold those, and may hold some that are no longer wanted.
        self._variables, self._resettable = variables, resettable
        self._checkpoint = tf.train.Checkpoint(variables=variables)
        self._score = score_function(layout, self._stacks, self._seeds, self.columns, self._labels)
        self._learn: dict[tuple[Feed, tuple[Parts, ...]], Function] = {}
        self._exporter = Exporter(layout, self._stacks, first, self._labels)
        self._phase: Phase = "window"
        self._held: npt.NDArray[np.bool_] | None = None

    def set_phase(self, phase: Phase) -> None:
        self._phase = phase

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        probabilities = self._score(minibatch.dense, minibatch.ids, minibatch.lists)
        return np.asarray(probabilities.numpy(), np.float32)

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        """One step of every model that takes this feed, and of the row sums.

        Raises:
            TrainingError: for a feature that is not finite, before anything changed; or for such a
                loss or gradient. The variables are then unusable: the process must end, and the
                next one starts at the last sealed checkpoint.
        """
        if not len(minibatch):
            return {}
        self._require_finite(minibatch)
        feed, unknown = minibatch.feed, np.full(len(minibatch), np.nan, np.float32)
        labels = [minibatch.of_label(place) for place in range(len(self._labels))]
        parts = self._seeds[0].parts(feed, self._phase)
        step = self._learn.get((feed, parts))
        if step is None:
            step = learn_function(
                self._layout, self._stacks, self._seeds, parts, feed, self._counters
            )
            self._learn[feed, parts] = step
        losses, rows, head_losses, held = step(
            minibatch.dense,
            minibatch.ids,
            minibatch.lists,
            _beside([each.labels for each in labels]),
            _beside([unknown if each.waits is None else each.waits for each in labels]),
            _beside([unknown if each.known is None else each.known for each in labels]),
            minibatch.sources,
            minibatch.row_ids,
        )
        self._held = held.numpy() if self._seeds[0].guards else None
        return self._sound(losses.numpy(), rows.numpy(), head_losses.numpy(), minibatch)

    def _sound(
        self,
        losses: npt.NDArray[np.float32],
        rows: npt.NDArray[np.int32],
        head_losses: npt.NDArray[np.float32],
        minibatch: Minibatch,
    ) -> dict[str, float]:
        found = {
            ScoreColumn(name, seed=seed).name: (float(losses[seed, place]), int(rows[seed, place]))
            for seed in range(len(losses))
            for place, name in enumerate(self.paradigms)
        }
        bad = [name for name, (loss, _) in found.items() if not np.isfinite(loss)]
        if not np.isfinite(head_losses).all():
            bad.append("delay head")
        if bad:
            raise TrainingError(
                f"the loss of paradigm {', '.join(bad)} is not finite at step"
                f" {int(self._counters.steps.numpy())} ({minibatch.feed} minibatch"
                f"{self._largest(minibatch)})"
            )
        return {name: loss for name, (loss, count) in found.items() if count}

    def _largest(self, minibatch: Minibatch) -> str:
        """The largest number of a minibatch, by which its row can be found; may be empty."""
        if not minibatch.dense.size:
            return ""
        row, place = np.unravel_index(np.abs(minibatch.dense).argmax(), minibatch.dense.shape)
        number = minibatch.dense[row, place]
        return f", whose largest number is {number:g} of feature {self._layout.dense[place]!r}"

    def seen(self) -> list[RowSums]:
        return [
            RowSums(rows=rows, sum=total, sum_of_squares=squares)
            for rows, total, squares in self._counters.row_sums.numpy().tolist()
        ]

    def learnt(self) -> dict[str, list[int]]:
        """With several labels, `sale:mixture` counts rows that were trained on for one of them.

        `sale/label_not_known` counts rows that lack it.
        """
        found = dict(zip(self._answers, self._counters.learnt.numpy().tolist(), strict=True))
        unsaid = self._counters.unsaid
        if unsaid is not None:
            rows = zip(self._labels, unsaid.numpy().tolist(), strict=True)
            found |= {f"{label}{NOT_KNOWN}": each for label, each in rows}
        return found

    def left_out(self) -> dict[str, LeftOut]:
        masked, paused = self._counters.masked, self._counters.paused
        if masked is None or paused is None:
            return {}
        rows = zip(masked.numpy().tolist(), paused.numpy().tolist(), strict=True)
        return {name: LeftOut(*each) for name, each in zip(self._answers, rows, strict=True)}

    def held(self) -> npt.NDArray[np.bool_] | None:
        return self._held

    def guards(self) -> dict[str, list[GuardState | None]]:
        """The first seed's guards by source, repeated for each variant that they can pause."""
        first = self._seeds[0]
        guarded = [n for n, each in zip(self.paradigms, first.guarded, strict=True) if each]
        found: dict[str, list[GuardState | None]] = {}
        for label, guard in zip(self._labels, first.guards, strict=False):
            states = guard.states()
            found |= {ScoreColumn(name, label=label).name: states for name in guarded}
        return found

    @property
    def _answers(self) -> list[str]:
        labels = self._labels if len(self._labels) > 1 else []
        of_labels = [ScoreColumn(n, label=label).name for label in labels for n in self.paradigms]
        return [*self.paradigms, *of_labels]

    def save(self, directory: Path) -> None:
        self._checkpoint.write(str(directory / VARIABLES))
        (directory / IDENTITY).write_text(self._identity.model_dump_json(indent=1))

    def load(self, directory: Path) -> None:
        """Restore what `save` wrote.

        Raises:
            ConfigError: when it belongs to another model.
        """
        found = ModelIdentity.model_validate_json((directory / IDENTITY).read_text())
        self._identity.require(found)
        self._restore(directory / VARIABLES)

    def _restore(self, path: Path) -> None:
        """Read every variable; resettable ones that the file does not hold become zero.

        Raises:
            ConfigError: when it lacks one of the others.
        """
        held = tf.train.load_checkpoint(str(path)).get_variable_to_shape_map()
        there = {name: each for name, each in self._variables.items() if _KEY.format(name) in held}
        lacking = self._variables.keys() - there.keys() - self._resettable.keys()
        if lacking:
            raise ConfigError(f"{path}: the checkpoint has no {', '.join(sorted(lacking))}")
        for name, variable in self._resettable.items():
            if name not in there:
                variable.assign(tf.zeros_like(variable))
        status = tf.train.Checkpoint(variables=there).read(str(path))
        status.assert_existing_objects_matched().expect_partial()

    def export(self, directory: Path, variant: str | None = None) -> None:
        self._exporter.write(directory, 0 if variant is None else self.paradigms.index(variant))

    def _require_finite(self, minibatch: Minibatch) -> None:
        finite = np.asarray(np.isfinite(minibatch.dense).all(axis=0))
        if not finite.all():
            names = [
                name for name, fine in zip(self._layout.dense, finite, strict=True) if not fine
            ]
            raise TrainingError(
                f"feature {', '.join(names)} is not finite in a {minibatch.feed} minibatch after"
                f" step {int(self._counters.steps.numpy())}: correct the rows, or use bucketise"
            )


def _beside(columns: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """One column as it is, float32[N]; several side by side, float32[N, L]."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def _columns(first: SeedModels, seeds: int) -> list[ScoreColumn]:
    names = [model.name for model in first.models]
    towers = [ScoreColumn(model.name, tower) for model in first.models for tower in model.towers]
    further = [ScoreColumn(name, seed=seed) for seed in range(1, seeds) for name in names]
    return [*(ScoreColumn(name) for name in names), *towers, *further]
