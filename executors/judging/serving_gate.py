"""The gate of one line: it reads event scores of the newest windows before a model is exported."""

from __future__ import annotations

from datetime import timedelta

from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import Interval
from forebay.executors.judging.event_figures import EventFigures
from forebay.executors.judging.event_rows import EventSpan, event_rows
from forebay.executors.judging.gate import WINDOWS_MAX, decide
from forebay.executors.judging.gate_decision import GateDecision, gate_decision
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import Segments
from forebay.home.store import store_of
from forebay.system.instants import to_us


def choose_variant(pipeline: PipelineSpec, chain: ModelChain, link: Link) -> GateDecision | None:
    """Which variant of a link serves; None where no gate is declared.

    link: it may not be recorded yet; its scores are in the store.

    Raises:
        DataError: when scores of earlier windows are missing or damaged.
    """
    spec, dataset = pipeline.job.publish, pipeline.dataset
    if spec.when != "gate" or pipeline.model.kind != "towers":
        return None
    windows = WINDOWS_MAX + dataset.label_horizon
    since = link.start - windows * (link.end - link.start)
    before = chain.between(Interval(since, since), link)
    trained = [one for one in before if one.window != link.window]
    store, spans = store_of(chain.home), []
    for one in [*trained, link]:
        stored = one.files.get("scores")
        folder = store.tree(stored) if stored else None
        segments = Segments(one.window, folder, dataset.label_key(spec.label))
        spans.append(EventSpan(one.window, to_us(one.start), to_us(one.end), segments))
    delay = dataset.offset_max // timedelta(microseconds=1)
    variants = pipeline.train.paradigms
    figures = [
        EventFigures.of(rows) for rows in event_rows(spans, dataset.label_horizon, delay, variants)
    ]
    serving = _serving(chain, variants[0]) if spec.against == "served" else None
    decision = decide(spec, variants, figures, serving)
    if not dataset.further_labels:
        return decision
    label = spec.label or next(iter(dataset.targets))
    return decision.model_copy(update={"words": f"{decision.words} (label {label})"})


def _serving(chain: ModelChain, declared: str) -> str | None:
    """The variant that serves now; None where nothing does."""
    published = chain.published()
    if published is None:
        return None
    link = chain.link(published.window, published.generation)
    if link is None:
        return None
    decided = gate_decision(chain, link)
    return declared if decided is None else decided.variant
