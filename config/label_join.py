"""Label join: whether batch rows are compared with what the stream said of them, and how far."""

from __future__ import annotations

from datetime import timedelta

from forebay.config.labels import delay_of
from forebay.config.pipelines import PipelineSpec

# Rows of more hours than that in one minibatch are rare: then there are few in a day.
_TOGETHER_MAX = 6
_PART_OF_OFFSET = 4


def joined_labels(pipeline: PipelineSpec) -> list[str]:
    """Labels of which a variant learns how late they are in the stream, see `label_key`."""
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
    """How many hours later than its first row a row of the same minibatch may be; None: any.

    Bounded, a batch row finds its copy in the stream of its own window too: rows that are served
    that many hours before it, and two more, have come by then, whatever was killed meanwhile. Only
    a single data executor serves its rows in that order. In windows of an hour there is nothing to
    find, copies are in earlier ones; but their line's warm start is one span of many hours.
    """
    single = pipeline.job.roles.data.count == 1
    if not single or not joins_labels(pipeline):
        return None
    part = pipeline.dataset.offset_max // (_PART_OF_OFFSET * timedelta(hours=1))
    return min(max(part, 1), _TOGETHER_MAX)
