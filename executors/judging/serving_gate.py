"""The gate of one line: reads event scores of its newest windows, and what was decided before."""

from __future__ import annotations

from datetime import timedelta

from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import Interval
from forebay.executors.judging.event_figures import EventFigures
from forebay.executors.judging.event_rows import EventSpan, event_rows
from forebay.executors.judging.gate import GATE_FILE, WINDOWS_MAX, GateDecision, decide
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import Segments
from forebay.home.store import store_of
from forebay.mixture.serving.served_features import FEATURES, ServedFeatures
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
        segments = Segments(one.window, store.tree(stored) if stored else None)
        spans.append(EventSpan(one.window, to_us(one.start), to_us(one.end), segments))
    delay = dataset.offset_max // timedelta(microseconds=1)
    variants = pipeline.train.paradigms
    figures = [
        EventFigures.of(rows, pipeline)
        for rows in event_rows(spans, dataset.label_horizon, delay, variants)
    ]
    serving = _serving(chain) if spec.against == "served" else None
    return decide(spec, variants, figures, serving)


def gate_decision(chain: ModelChain, link: Link) -> GateDecision | None:
    """What the gate decided of a link whose model was exported; None where there was none.

    Raises:
        DataError: when the exported model is missing or damaged.
    """
    stored = link.files.get("saved_model")
    if stored is None or not store_of(chain.home).is_there(stored):
        return None
    return GateDecision.of_file(store_of(chain.home).tree(stored) / GATE_FILE)


def _serving(chain: ModelChain) -> str | None:
    """The variant that serves now, as its model says."""
    published = chain.published()
    if published is None:
        return None
    link = chain.link(published.window, published.generation)
    stored = None if link is None else link.files.get("saved_model")
    if stored is None:
        return None
    found = ServedFeatures.of_file(store_of(chain.home).tree(stored) / FEATURES)
    return None if found is None else found.paradigm
