"""Label join: whether batch rows are compared with their copies in the stream, and how far back."""

from __future__ import annotations

from datetime import timedelta

from forebay.config.labels import delay_of
from forebay.config.pipelines import PipelineSpec

# Minibatches that span more hours are rare: only with few rows a day.
_TOGETHER_MAX = 6
_PART_OF_OFFSET = 4


def joined_labels(pipeline: PipelineSpec) -> list[str]:
    """Labels for which a variant learns how late they are in the stream, see `label_key`."""
    if pipeline.model.kind != "towers":
        return []
    return [
        pipeline.dataset.label_key(name)
        for name, label in pipeline.dataset.targets.items()
        if any(delay_of(label, variant) != "none" for variant in pipeline.train.variants)
    ]


def joins_labels(pipeline: PipelineSpec) -> bool:
    """Whether a variant learns how late the labels of the stream are."""
    return bool(joined_labels(pipeline))


def hours_together(pipeline: PipelineSpec) -> int | None:
    """How many hours after a minibatch's first row its other rows may be; None: any number.

    With a bound, a batch row can also be matched with its copy in the stream of its own window:
    rows served this many hours plus two before it have arrived by then, whatever was killed
    meanwhile. Only a single data executor serves its rows in that order. Hourly windows contain no
    such copies, which are in earlier windows, but the warm start of their line is one span of many
    hours.
    """
    single = pipeline.job.roles.data.count == 1
    if not single or not joins_labels(pipeline):
        return None
    part = pipeline.dataset.offset_max // (_PART_OF_OFFSET * timedelta(hours=1))
    return min(max(part, 1), _TOGETHER_MAX)
