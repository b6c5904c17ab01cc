"""How much memory a declared model takes, counted as `mixture.models` builds it.

Pure, and without TensorFlow, which would take the memory first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forebay.config.specs.features import NumericFeature, cardinality
from forebay.config.specs.labels import delay_of
from forebay.config.specs.pipelines import PipelineSpec

_FLOAT_BYTES = 4
_ADAM = 3  # weights and two moments
_WAIT_INPUTS = 2  # of a delay head
# Drawing a table or a tower takes three of its size at once.
_DRAWN = 2


@dataclass(frozen=True)
class ModelSize:
    """Of all variants and seeds. building_bytes: the most while it is built.

    feature: the one with the largest table.
    """

    parameters: int
    bytes: int
    building_bytes: int
    feature: str
    words: str


def model_size(pipeline: PipelineSpec) -> ModelSize:
    """What a pipeline's learner takes in memory; nothing if it only counts rows."""
    if pipeline.model.kind == "count":
        return ModelSize(0, 0, 0, "", "the model only counts rows")
    features, seeds = pipeline.dataset.features, pipeline.train.seeds
    dimensions = {
        name: 0 if isinstance(spec, NumericFeature) else spec.dimension
        for name, spec in features.items()
    }
    ids = {name: cardinality(spec) or 0 for name, spec in features.items()}
    rows = {name: ids[name] * (dimensions[name] + 1) for name in features}  # with Adagrad's sums
    stacked: dict[int, int] = {}
    for name, dimension in dimensions.items():
        stacked[dimension] = stacked.get(dimension, 0) + ids[name] * dimension
    variants, apart = pipeline.train.variants, pipeline.model.mixture.embeddings == "separate"
    heads = sum(
        any(delay_of(label, each) == "head" for each in variants)
        for label in pipeline.dataset.targets.values()
    )
    tables = sum(2 if apart and each.paradigm == "mixture" else 1 for each in variants)
    sets = seeds * (heads + tables)
    dense = list(dimensions.values()).count(0)
    towers = list(_towers(pipeline, dense, sum(dimensions.values()), heads))
    held = _FLOAT_BYTES * (sets * sum(rows.values()) + _ADAM * seeds * sum(towers))
    building = held + _FLOAT_BYTES * _DRAWN * max(*stacked.values(), *towers)
    parameters = sets * sum(stacked.values()) + seeds * sum(towers)
    largest = max(rows, key=lambda name: rows[name])
    words = (
        f"feature {largest!r} has {ids[largest]:,} buckets of dimension {dimensions[largest]}: "
        f"{gib(_FLOAT_BYTES * sets * rows[largest])} of a model that takes {gib(held)} with all "
        f"seeds, rivals and optimisers ({parameters:,} parameters), and {gib(building)} while it "
        "is built"
    )
    return ModelSize(parameters, held, building, largest, words)


def gib(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB"


def _towers(pipeline: PipelineSpec, dense: int, embedded: int, heads: int) -> Iterator[int]:
    """Weights of each tower of a seed."""
    model, labels, width = pipeline.model, len(pipeline.dataset.targets), dense + embedded
    spec = model.mixture
    for variant in pipeline.train.variants:
        if variant.paradigm != "mixture":
            yield _weights([width, *model.tower.hidden, labels])
            continue
        memory, adapt = spec.memory_tower.hidden, [*spec.adapt_tower.hidden, labels]
        last = [width, *memory][-1]
        extra = {"logit": labels, "hidden": last, "both": last + labels}[spec.memory_output]
        yield _weights([width, *memory, labels])
        yield _weights([width, *adapt])
        yield (extra + spec.memory_embeddings * embedded) * adapt[0]
    yield heads * _weights([width + _WAIT_INPUTS, *model.delay_head.hidden, 1])


def _weights(widths: Sequence[int]) -> int:
    return sum((wide + 1) * narrow for wide, narrow in pairwise(widths))
