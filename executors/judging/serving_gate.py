"""The gate of one line: it reads event scores of the newest windows before a model is exported.

What it knows about earlier windows was stored with the last link that had a gate, so the scores of
each window are read once, by its own gate, and not again by those of later windows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from pydantic import ValidationError

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import Interval
from forebay.errors import DataError
from forebay.executors.judging.evidence.gate_evidence import GateEvidence, KnownWindow
from forebay.executors.judging.evidence.gather import TrainedWindow, gather
from forebay.executors.judging.gate import HALF_LIVES, WINDOWS_MAX, decide, gate_decision
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import GateDecision, Link
from forebay.executors.window_files.scores import Segments
from forebay.home.store.base import Store
from forebay.home.store.open import store_of
from forebay.system.instants import to_us

_LOG = logging.getLogger(__name__)


class GateChoice(NamedTuple):
    decision: GateDecision
    evidence: GateEvidence


def choose_variant(pipeline: PipelineSpec, chain: ModelChain, link: Link) -> GateChoice | None:
    """Which variant of a link serves; None where no gate is declared.

    link: it may not be recorded yet; its scores are in the store.

    Raises:
        DataError: when scores of earlier windows are missing or damaged.
    """
    spec, dataset = pipeline.job.publish, pipeline.dataset
    if spec.when != "gate" or pipeline.model.kind != "towers":
        return None
    horizon = dataset.label_horizon
    since = link.start - (WINDOWS_MAX + horizon) * (link.end - link.start)
    before = chain.between(Interval(since, since), link)
    links = [*(one for one in before if one.window != link.window), link]
    store, key = store_of(chain.home), dataset.label_key(spec.label)
    trained = [
        TrainedWindow(
            one.name, to_us(one.start), to_us(one.end), partial(segments_of, store, one, key)
        )
        for one in links
    ]
    evidence = gather(trained, horizon, _known(store, links, horizon, key), key)
    variants = pipeline.train.paradigms
    figures = evidence.figures(dataset.label_delay)
    newest = next((one for one in links[-2::-1] if "gate" in one.files), None)
    serving, half_life = _decided(chain, newest), HALF_LIVES[dataset.window]
    decision = decide(spec, variants, figures, serving, half_life)
    if newest is not None and serving is None:
        words = f"{decision.words}; the decision of window {newest.window} cannot be read"
        decision = decision.model_copy(update={"words": words})
    if dataset.further_labels:
        label = spec.label or next(iter(dataset.targets))
        decision = decision.model_copy(update={"words": f"{decision.words} (label {label})"})
    return GateChoice(decision, evidence)


def segments_of(store: Store, link: Link, label: str) -> Segments:
    stored = link.files.get("scores")
    return Segments(link.window, store.tree(stored) if stored else None, label)


def _known(store: Store, links: Sequence[Link], horizon: int, label: str) -> list[KnownWindow]:
    """The newest evidence of links before the last one that is readable, and of these links."""
    names = [link.name for link in links[:-1]]
    for stored in (one.files["evidence"] for one in links[-2::-1] if "evidence" in one.files):
        try:
            evidence = GateEvidence.model_validate_json(store.path(stored).read_bytes())
        except (DataError, ValidationError) as error:
            _LOG.warning(
                "the gate's evidence of windows before %s cannot be read; it takes an earlier one, "
                "or rereads their scores: %s",
                links[-1].window,
                error,
            )
            continue
        if known := evidence.of_links(names, horizon, label):
            return known
    return []


def _decided(chain: ModelChain, newest: Link | None) -> str | None:
    """The variant that was decided on for a link; None without it, or where it is damaged.

    newest: of earlier windows only, so that a reprocessed window is decided as it was.
    """
    try:
        decision = None if newest is None else gate_decision(chain, newest)
    except DataError as error:
        _LOG.warning("what the gate decided last cannot be read; it begins as declared: %s", error)
        return None
    return None if decision is None else decision.variant
