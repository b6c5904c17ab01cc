"""`train.compare: auto`: which variants are trained beside the declared one.

They are chosen when a line begins, for the machine that submits its first job. Its links name them,
so that later windows train the same whatever release trains them, and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from forebay.config.checks.crosscheck import check_pipeline
from forebay.config.checks.loaded import Loaded
from forebay.config.checks.model_size import gib, model_size
from forebay.config.checks.pipeline_check import known_feeds
from forebay.config.specs.models import Variant
from forebay.config.specs.pipelines import AUTO, ComparedSpec, PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.problems import Problem, errors
from forebay.system.memory import limit_bytes

# In this order. With a declared `mixture+head` the first three are within .002 AUC of the best, in
# the mean of the measured regimes (a test recounts it), and single towers cost least. Without a
# warm start `batch_then_stream+fnw` is `stream+fnw`.
PREFERRED = (
    Variant("batch_then_stream", "fnw"),
    Variant("batch"),
    Variant("mixed"),
    Variant("mixture"),
    Variant("stream"),
)
RIVALS_MAX = 3


def settle_rivals(
    pipeline: Loaded[PipelineSpec], sources: Mapping[str, Loaded[SourceSpec]]
) -> None:
    """Put variants in place of `auto`: preferred ones that no check refuses, within memory."""
    spec = pipeline.repaired
    if spec is None or _written(pipeline) != AUTO:
        return
    pipeline.automatic = True
    declared_bytes = spec.job.roles.trainer.memory
    # The rest is for what TensorFlow and the queues take.
    bytes_max = min(limit_bytes(), declared_bytes or limit_bytes()) // 2
    found: list[Variant] = []
    too_large: list[Variant] = []
    faults_max = _faults(pipeline, _with(spec, found), sources)
    feeds = known_feeds(spec, sources)  # of one feed, all variants learn the same
    suits = spec.model.kind == "towers" and len(feeds) > 1
    declared, warm_start = spec.train.variants[0], spec.train.warm_start is not None
    for variant in preferred(declared, warm_start=warm_start) if suits else ():
        if len(found) == RIVALS_MAX:
            break
        trial = _with(spec, [*found, variant])
        if _faults(pipeline, trial, sources) > faults_max:
            continue
        fits = model_size(trial).building_bytes <= bytes_max
        (found if fits else too_large).append(variant)
    if too_large:
        names = ", ".join(each.name for each in too_large)
        message = (
            f"compare: auto leaves out {names}: the model would take more than {gib(bytes_max)}, "
            "half of the memory that the trainer has"
        )
        problem = pipeline.document.problem(("train", "compare"), "rivals", message)
        pipeline.problems.append(replace(problem, severity="note"))
    put_rivals(pipeline, found)


def preferred(declared: Variant, *, warm_start: bool) -> list[Variant]:
    """What `declared` is compared with, what suits best first."""
    found = list(PREFERRED)
    if not warm_start:
        found[0] = Variant("stream", "fnw")
    if declared.delay == "head":  # which costs little once there is one
        heads = {"mixed", "mixture"}
        found = [each._replace(delay="head") if each.name in heads else each for each in found]
    same = {declared}
    if declared.paradigm == "batch_then_stream" and not warm_start:
        same.add(declared._replace(paradigm="stream"))
    return [each for each in found if each not in same]


def put_rivals(pipeline: Loaded[PipelineSpec], rivals: Sequence[Variant]) -> None:
    """Into the document too, from which jobs read it."""
    for value in (pipeline.document.value, pipeline.document.written):
        value["train"] = {**value["train"], "compare": [each._asdict() for each in rivals]}
    if pipeline.repaired is not None:
        pipeline.repaired = _with(pipeline.repaired, rivals)
        pipeline.spec = None if pipeline.spec is None else pipeline.repaired


def _written(pipeline: Loaded[PipelineSpec]) -> object:
    train = pipeline.document.value.get("train")
    return train.get("compare") if isinstance(train, dict) else None


def _with(spec: PipelineSpec, rivals: Sequence[Variant]) -> PipelineSpec:
    compare = tuple(ComparedSpec(**each._asdict()) for each in rivals)
    return spec.model_copy(update={"train": spec.train.model_copy(update={"compare": compare})})


def _faults(
    pipeline: Loaded[PipelineSpec], spec: PipelineSpec, sources: Mapping[str, Loaded[SourceSpec]]
) -> int:
    found: list[Problem] = check_pipeline(replace(pipeline, repaired=spec), sources)
    return len(errors(found))
