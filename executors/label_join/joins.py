"""LabelJoins: a join of each label that a variant corrects, as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from forebay.config.label_join import joined_labels
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.datatasks.plans import WindowPlan
from forebay.executors.label_join.join import LabelJoin
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.mixture.minibatch import Minibatch


class LabelJoins:
    """What the stream said of every label, see `LabelJoin`.

    Each label has sorted arrays of its own: a stream may publish an event once for each, and labels
    are looked for as far back as each of them says.
    """

    def __init__(
        self, chain: ModelChain, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
    ) -> None:
        """Nothing is read yet."""
        places = ["", *pipeline.dataset.further_labels]
        self._joins = {
            places.index(label): LabelJoin(chain, pipeline, sources, label)
            for label in joined_labels(pipeline)
        }

    def begin(self, plan: WindowPlan, before: Link | None) -> None:
        """Go to a window, see `LabelJoin.begin`."""
        for join in self._joins.values():
            join.begin(plan, before)

    def resume(self, plan: WindowPlan, scores: Path) -> None:
        """Take back what is sealed of the window's own scores."""
        for join in self._joins.values():
            join.resume(plan, scores)

    def add(self, minibatch: Minibatch) -> None:
        """Rows of the stream that were learnt now."""
        for place, join in self._joins.items():
            join.add(minibatch.of_label(place))

    def joined(self, minibatch: Minibatch) -> Minibatch:
        """Batch rows with `waits` and `known` of each of these labels."""
        found = minibatch
        for place, join in self._joins.items():
            own = join.joined(minibatch.of_label(place))
            if place == 0:
                found = replace(found, waits=own.waits, known=own.known)
                continue
            rows = replace(found.further[place - 1], waits=own.waits, known=own.known)
            further = [*found.further]
            further[place - 1] = rows
            found = replace(found, further=tuple(further))
        return found
