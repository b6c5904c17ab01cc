"""Advice from what a model line has measured: the labels of its stream rows, and its row counts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from forebay.config.specs.labels import delay_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.mixture.advice.decision import Situation, advise, is_incomplete, learns_late_labels
from forebay.mixture.advice.recommendation import INCOMPLETE_LABELS, Advice, with_own_figures
from forebay.mixture.advice.regimes import measured_regimes
from forebay.mixture.metrics.estimate import (
    NORMAL_QUANTILE,
    SEED_NOISE,
    SPREAD_WINDOWS_MIN,
    Estimate,
    over_windows,
)
from forebay.mixture.metrics.figures import Difference, LabelCounts
from forebay.mixture.metrics.share import Share

WINDOWS_MAX = 24  # labels of earlier windows may say little about those of today


def advice_on_windows(
    pipeline: PipelineSpec,
    windows: Collection[Judgement],
    label: str = "",
    differences: Collection[Difference] = (),
    benched: Collection[str] = (),
) -> Advice | None:
    """What trained and judged windows say about a pipeline.

    None where no model learns labels, and where no stream is read, whose labels may be late.

    windows: rows of one are alike, which widens the interval. label: which one, see `label_key`.
    differences: by its complete labels. What is recommended without them was measured on models of
    one label. benched: what the gate found clearly worse.
    """
    if pipeline.model.kind != "towers" or not windows:
        return None
    if not any(window.has_stream for window in windows):
        return None
    known = known_share(window.part(label).label_completeness for window in windows)
    batch = sum(window.rows["batch"] for window in windows)
    stream = sum(window.rows["stream"] for window in windows)
    own = line_gains(pipeline, windows, label)
    for name, one in _own_gains(differences, corrected_as(pipeline, label)).items():
        # What is printed as a verdict is not denied, unless it says little.
        if name not in own or one.is_clear() or one.reach <= own[name].reach:
            own[name] = one
    share = min(1.0, stream / batch) if batch else None
    return advised(
        *(pipeline, label, known, own),
        stream_share=share,
        has_batch=batch > 0,
        has_stream=stream > 0,
        benched=[corrected_as(pipeline, label).get(name, name) for name in benched],
    )


def known_share(counts: Iterable[LabelCounts | None]) -> Share | None:
    """Of complete positives of some windows, those that were known at publication."""
    known = [each for each in counts if each is not None]
    return Share.of(
        # Judgements of an earlier day also counted positives that were taken back.
        [min(each.fresh_positives, each.complete_positives) for each in known],
        [each.complete_positives for each in known],
    )


def advised(
    pipeline: PipelineSpec,
    label: str,
    known: Share | None,
    own: Mapping[str, Estimate],
    *,
    stream_share: float | None,
    has_batch: bool,
    has_stream: bool,
    crowded: bool = False,
    benched: Collection[str] = (),
) -> Advice:
    """known: of complete positives, at publication. own: what the line's windows have gained."""
    declared = declared_for(pipeline, label)
    situation = Situation(
        completeness=known.value if known else None,
        interval=(known.low, known.high) if known else None,
        stream_share=stream_share,
        has_batch=has_batch,
        has_stream=has_stream,
        has_warm_start=pipeline.train.warm_start is not None,
        crowded=crowded,
    )
    found = advise(known, situation, declared, measured_regimes())
    if known is not None and is_incomplete(situation.span[1]):
        own = {name: one for name, one in own.items() if not learns_late_labels(name)}
    recommended = with_own_figures(declared, own, found.recommendation, benched)
    return replace(found, recommendation=recommended)


def line_gains(
    pipeline: PipelineSpec, windows: Collection[Judgement], label: str = ""
) -> dict[str, Estimate]:
    """AUC of each variant minus the declared one's at event time, pooled over a line's windows.

    Where three windows or more with all their labels have both. Each counts by its pairs of a
    positive and a negative row. The interval is over windows, and allows for what a choice of seeds
    moves, since the same models answered in all of them. windows, label: see `advice_on_windows`.
    """
    names = corrected_as(pipeline, label)
    serving, declared = next(iter(names.items()))
    apart: dict[str, list[tuple[float, float]]] = {}
    seeds = 1
    for window in windows:
        part = window.part(label)
        base = part.answers[serving].auc if serving in part.answers else None
        if part.is_partial or base is None:
            continue
        # Of several that are the same to the label, the last one counts.
        for name, each in {names.get(one, one): own for one, own in part.answers.items()}.items():
            if "/" not in name and each.auc is not None:
                pairs = each.positives * (each.rows - each.positives)
                apart.setdefault(name, []).append((each.auc - base, pairs))
                seeds = each.seeds
    apart.pop(declared, None)
    pooled = {
        name: over_windows(*zip(*each, strict=True))
        for name, each in apart.items()
        if len(each) >= SPREAD_WINDOWS_MIN
    }
    return {
        name: Estimate(value, value - reach, value + reach, seeds)
        for name, (value, spread) in pooled.items()
        for reach in [math.hypot(spread, NORMAL_QUANTILE * SEED_NOISE / math.sqrt(seeds))]
    }


def _own_gains(
    differences: Collection[Difference], names: Mapping[str, str]
) -> dict[str, Estimate]:
    """AUC of each variant minus the declared one's, also of those that are declared no more.

    names: what variants are to the label, the declared one first; another may be the same to it.
    """
    serving, declared = next(iter(names.items()))
    found: dict[str, Estimate] = {}
    for row in differences:
        if row.b == serving:
            found[names.get(row.a, row.a)] = row.estimate
        elif row.a == serving:
            turned = Estimate(-row.value, -row.high, -row.low, row.seeds)
            found[names.get(row.b, row.b)] = turned
    found.pop(declared, None)
    return found


def line_windows(pipeline: PipelineSpec, chain: ModelChain) -> dict[str, Judgement]:
    """Judgements of a line's last windows by window; windows without one are left out.

    Windows that still wait for labels say little; the ones before them are complete by now.
    """
    return chain.last_judgements(pipeline.dataset.label_horizon + WINDOWS_MAX)


def line_warnings(pipeline: PipelineSpec, chain: ModelChain) -> list[str]:
    if pipeline.model.kind != "towers":
        return []
    return late_label_warnings(pipeline, line_windows(pipeline, chain).values())


def late_label_warnings(pipeline: PipelineSpec, windows: Collection[Judgement]) -> list[str]:
    if INCOMPLETE_LABELS in pipeline.train.accept:
        return []
    warnings = []
    for name in pipeline.dataset.targets:
        found = advice_on_windows(pipeline, windows, pipeline.dataset.label_key(name))
        if found is not None and found.is_late:
            warnings.append(f"label {name}: {found.words}" if name else found.words)
    return warnings


def declared_for(pipeline: PipelineSpec, label: str) -> str:
    """The variant that serves a label (see `label_key`), with that label's own correction."""
    return next(iter(corrected_as(pipeline, label).values()))


def corrected_as(pipeline: PipelineSpec, label: str) -> dict[str, str]:
    """What each variant is to one label, by name: a variant may correct only other labels."""
    rule = pipeline.dataset.label_named(label)
    return {
        each.name: each._replace(delay=delay_of(rule, each)).name
        for each in pipeline.train.variants
    }
