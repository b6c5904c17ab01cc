"""LabelJoins: the joins of all labels that a variant corrects, behind one interface."""

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
    """What the stream published for every label, see `LabelJoin`.

    Each label has its own sorted arrays: a stream may publish an event once for each label, and
    each label declares how far back to look.
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
        """Restore rows from the sealed scores of the window itself."""
        for join in self._joins.values():
            join.resume(plan, scores)

    def add(self, minibatch: Minibatch) -> None:
        """Add rows of the stream that were just trained on."""
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
