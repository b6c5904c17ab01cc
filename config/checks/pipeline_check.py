"""Contradictions in how a pipeline mixes its streams: feeds, weights, floors, dates, paradigms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from forebay.config.checks.loaded import Loaded
from forebay.config.checks.model_size import model_size
from forebay.config.specs.base import format_duration, format_mib
from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import hours_together, stream_feed
from forebay.config.specs.jobs import CONTINUOUS, INLINE
from forebay.config.specs.models import Paradigm, Variant
from forebay.config.specs.pipelines import ComparedSpec, PipelineSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import WindowSize
from forebay.config.yaml.positions import Document, KeyPath
from forebay.config.yaml.problems import Problem
from forebay.errors import ConfigError

STRICT_PRIORITY_RATIO = 2.0
LARGE_MODEL_BYTES = 8 << 30
# TensorFlow and a small model: ended at 250 MiB, trained in 300.
TRAINER_BYTES = 300 << 20
_NEEDED_FEEDS: dict[Paradigm, tuple[Feed, ...]] = {
    "batch": ("batch",),
    "stream": ("stream",),
    "batch_then_stream": ("batch", "stream"),
    "mixed": (),
    "mixture": ("batch", "stream"),
}


def check_mixing(
    document: Document, spec: PipelineSpec, sources: Mapping[str, SourceSpec] | None
) -> Iterator[Problem]:
    """Problems and notes; without `sources` (one is unknown or bad) feeds are not checked."""
    for check in (_weights, _floors, _dates, _paper, _size, _plane):
        yield from check(document, spec)
    if sources is not None:
        feeds: dict[str, Feed] = {}
        mixed = list(_feeds(document, spec, sources, feeds))
        yield from mixed
        if not mixed:
            yield from _paradigms(document, spec, feeds)
            yield from _continuous(document, spec, sources)


def settle_paradigm(
    pipeline: Loaded[PipelineSpec], sources: Mapping[str, Loaded[SourceSpec]]
) -> None:
    """Where no paradigm is written and all streams feed `batch`, or all `stream`, that is it.

    It is put into the document too, from which jobs read it.
    """
    spec = pipeline.repaired
    if spec is None or spec.model.kind == "count" or "paradigm" in spec.train.model_fields_set:
        return
    feeds = known_feeds(spec, sources)
    if len(feeds) != 1:
        return
    paradigm = feeds.pop()
    if Variant(paradigm, spec.train.delay) in spec.train.variants:
        return
    for value in (pipeline.document.value, pipeline.document.written):
        value["train"] = {**value.get("train", {}), "paradigm": paradigm}
    train = spec.train.model_copy(update={"paradigm": paradigm})
    pipeline.repaired = spec.model_copy(update={"train": train})
    pipeline.spec = None if pipeline.spec is None else pipeline.repaired


def known_feeds(spec: PipelineSpec, sources: Mapping[str, Loaded[SourceSpec]]) -> set[Feed]:
    """What the streams feed; nothing where it is not known: `check_pipeline` says why."""
    known = {name: each.repaired for name, each in sources.items() if each.repaired is not None}
    if not known.keys() >= set(spec.source_names):
        return set()
    try:
        return {stream_feed(name, each, known) for name, each in spec.dataset.streams.items()}
    except ConfigError:
        return set()


def _weights(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    weights = {name: stream.weight for name, stream in spec.dataset.streams.items()}
    heavy = max(weights, key=lambda name: weights[name])
    light = min(weights, key=lambda name: weights[name])
    if weights[heavy] < STRICT_PRIORITY_RATIO * weights[light]:
        return
    message = (
        f"stream {heavy!r} has {weights[heavy] / weights[light]:g} times the weight of {light!r}: "
        f"at {STRICT_PRIORITY_RATIO:g} times or more this is strict priority at any queue_unit "
        "(the sigmoid is between 0.5 and 1); give the lighter stream a floor, so that it does not "
        "starve"
    )
    path = ("dataset", "streams", heavy, "weight")
    yield replace(document.problem(path, "strict-priority", message), severity="note")


def _floors(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    total = 0.0
    for name, stream in spec.dataset.streams.items():
        total += stream.floor
        if total >= 1:
            message = f"the floors add up to {total:g}: their sum must be below 1"
            yield document.problem(("dataset", "streams", name, "floor"), "floors", message)
            return


def _dates(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    dataset = spec.dataset
    if dataset.end is not None and dataset.end <= dataset.start:
        message = f"end: {dataset.end:%Y-%m-%dT%H:%M} is not after start: no windows are left"
        yield document.problem(("dataset", "end"), "empty-range", message)
    warm_start = spec.train.warm_start
    if warm_start is not None and warm_start >= dataset.start:
        message = (
            f"warm_start: {warm_start:%Y-%m-%dT%H:%M} is not before dataset.start "
            f"({dataset.start:%Y-%m-%dT%H:%M}): history ends where the first window starts"
        )
        yield document.problem(("train", "warm_start"), "warm-start", message)
    if dataset.window is WindowSize.HOUR and dataset.timezone != "UTC":
        message = "timezone: hourly windows are UTC hours; a zone only applies to days; remove it"
        problem = document.problem(("dataset", "timezone"), "timezone-unused", message)
        yield replace(problem, severity="note")


def _size(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    """A note: a machine may have the memory. Where it is trained, it is refused otherwise."""
    size = model_size(spec)
    if size.building_bytes > LARGE_MODEL_BYTES:
        problem = document.problem(("dataset", "features", size.feature), "large-model", size.words)
        yield replace(problem, severity="note")
    memory, needed = spec.job.roles.trainer.memory, TRAINER_BYTES + size.building_bytes
    if memory is not None and memory < needed:
        message = (
            f"memory: {format_mib(memory)} will end the trainer: TensorFlow and this model take "
            f"about {format_mib(needed)}"
        )
        problem = document.problem(("job", "roles", "trainer", "memory"), "memory", message)
        yield replace(problem, severity="note")


def _plane(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    if spec.job.plane == INLINE:
        message = (
            "plane: inline runs the whole job in the process that submits it: `forebay run` only, "
            "no limits, no restart of what hangs, and a payload that kills its reader ends it all"
        )
        yield replace(document.problem(("job", "plane"), "plane", message), severity="note")


def _feeds(
    document: Document,
    spec: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    feeds: dict[str, Feed],
) -> Iterator[Problem]:
    """Streams that mix bounded and unbounded sources; the others' feeds go into `feeds`."""
    for name, stream in spec.dataset.streams.items():
        try:
            feeds[name] = stream_feed(name, stream, sources)
        except ConfigError as error:
            path = ("dataset", "streams", name, "sources")
            yield document.problem(path, "feed", str(error), at_key=True)


def _continuous(
    document: Document, spec: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> Iterator[Problem]:
    """What a window that goes on now reads must be over, or a stream."""
    publish = spec.job.publish
    if publish.every is not None and (spec.job.process != CONTINUOUS or publish.when == "never"):
        message = (
            "every: only a line with job.process: continuous has windows that go on, and only one "
            "that publishes (job.publish.when) lets their models serve: remove it"
        )
        yield document.problem(("job", "publish", "every"), "continuous", message)
    if spec.job.process != CONTINUOUS:
        return
    dataset = spec.dataset
    length = timedelta(hours=1 if dataset.window is WindowSize.HOUR else 24)
    followed = False
    for name, stream in dataset.streams.items():
        followed |= stream.offset < length
        bounded = [each for each in stream.sources if kind_named(sources[each].kind).bounded]
        if bounded and stream.offset < length:
            message = (
                f"offset: source {bounded[0]!r} has no rows of a window that goes on now, as "
                f"job.process: continuous trains it: write offset: {format_duration(length)} or "
                "more, or another process"
            )
            yield document.problem(("dataset", "streams", name, "offset"), "continuous", message)
    if dataset.window is WindowSize.DAY and hours_together(spec) is not None:
        message = (
            "window: 1d with process: continuous cannot learn how late labels are: a copy of a row "
            "may be in the window that goes on; write window: 1h, or another process"
        )
        yield document.problem(("dataset", "window"), "continuous", message)
    if not followed:
        message = (
            "process: continuous follows a stream, but each offset is as long as a window: write "
            "standing"
        )
        yield document.problem(("job", "process"), "continuous", message)


def _paradigms(
    document: Document, spec: PipelineSpec, feeds: Mapping[str, Feed]
) -> Iterator[Problem]:
    if spec.model.kind == "count":
        return
    for index, variant in enumerate(spec.train.variants):
        path: KeyPath = ("train", "compare", index - 1) if index else ("train", "paradigm")
        if index and isinstance(spec.train.compare[index - 1], ComparedSpec):
            path = (*path, "paradigm")
        paradigm = variant.paradigm
        lacking = [feed for feed in _NEEDED_FEEDS[paradigm] if feed not in feeds.values()]
        if lacking:
            usable = [
                name for name, needed in _NEEDED_FEEDS.items() if set(needed) <= set(feeds.values())
            ]
            message = (
                f"paradigm {paradigm!r} needs a stream that feeds {' and '.join(lacking)}, but "
                f"there is none; add one, or choose {' or '.join(usable)}"
            )
            yield document.problem(path, "paradigm-feed", message)
        elif variant.delay != "none":
            yield from _delay(document, variant, (*path[:-1], "delay"), feeds)


def _delay(
    document: Document, variant: Variant, path: KeyPath, feeds: Mapping[str, Feed]
) -> Iterator[Problem]:
    """A correction of late labels needs late labels, and complete ones to learn from."""
    if variant.paradigm == "batch" or "stream" not in feeds.values():
        rule = (
            f"corrects labels of stream rows, and paradigm {variant.paradigm!r} trains on none "
            "here; remove it"
        )
    elif "batch" not in feeds.values():
        rule = (
            "learns from complete labels how late the stream's are, but no stream feeds batch; "
            "add one, or remove the delay"
        )
    else:
        return
    yield document.problem(path, "delay-feed", f"delay: {variant.delay!r} {rule}")


def _paper(document: Document, spec: PipelineSpec) -> Iterator[Problem]:
    """Keys that may not be changed in mode `paper`, which is Algorithm 1 to the letter."""
    mixture = spec.model.mixture
    if mixture.mode != "paper":
        return
    paper: dict[str, object] = {
        "gain": 1.0,
        "embeddings": "shared",
        "stop_gradient": "output",
        "memory_inputs": "random",
        "adapt_learns": "stream",
        "memory_embeddings": False,
    }
    for key, value in paper.items():
        if getattr(mixture, key) != value:
            message = f"{key}: this is not part of mode 'paper'; remove it, or use mode: measured"
            yield document.problem(("model", "mixture", key), "paper-mode", message, at_key=True)
