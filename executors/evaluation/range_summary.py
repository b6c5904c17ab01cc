"""The summary of a range of trained windows, from only the ledger and the model chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import is_warm_start
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import ConfigError
from forebay.executors.advice.line import advice_on_windows, line_windows
from forebay.executors.advice.repeated_events import repeat_warnings
from forebay.executors.evaluation.run_summary import LabelSummary, RunFacts, Summary
from forebay.executors.evaluation.summary import (
    judged,
    offset_words,
    opinion,
    rows_verdict,
    window_facts,
)
from forebay.executors.evaluation.windows import Evaluation, complete_judgements, evaluate
from forebay.executors.evaluation.words import row_notes
from forebay.executors.job.stored_jobs import jobs_of
from forebay.executors.judging.gate import gate_decision
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import GateDecision, Link
from forebay.executors.model_line.serving import pinned_words
from forebay.executors.window_files.steps import shown_series
from forebay.home.store.open import store_of
from forebay.mixture.advice.recommendation import ToldAdvice
from forebay.mixture.metrics.figures import Pooled


def summarise_windows(
    pipeline: PipelineSpec, chain: ModelChain, keys: Sequence[str], facts: RunFacts | None = None
) -> Summary:
    """Everything that a report needs about windows that are all trained.

    A line's warm start is part of every range of it: the model's row sums count it too.

    facts: by default, what the jobs that trained the windows say.

    Raises:
        ConfigError: when one of them is not trained.
        DataError: when the plan that a model was trained from is gone, and it was never judged.
    """
    links = _trained(chain, keys)
    evaluation = evaluate(pipeline, chain, links)
    first = chain.first()
    if first is not None and is_warm_start(first.window):
        links = [first, *links]
    stale = chain.stale_reasons()
    found, forgotten = _known(pipeline, chain, links, stale, evaluation)
    windows = {key: one for key, one in found.items() if not is_warm_start(key)}
    agree, line = rows_verdict(found.values())
    told = facts or _facts_of_jobs(chain, links)
    notes = [*told.notes, *evaluation.notes]
    if forgotten:
        notes.append(
            f"forgotten windows: {', '.join(forgotten)}; the figures of their rows are from before "
            "that, and the next run plans and trains them again"
        )
    published = chain.published()
    if published is not None and published.pinned:
        words = pinned_words(published.window, chain.pipeline, chain.line)
        notes += [] if any(words in note for note in notes) else [words]
    model = links[-1].files.get("saved_model") if links else None
    pooled, measured = evaluation.pooled, [*(line_windows(pipeline, chain) | windows).values()]
    warnings = pooled.warnings + repeat_warnings(windows.values())
    gate = gate_decision(chain, links[-1]) if links else None
    return Summary(
        **{**dict(told), "notes": notes + row_notes(found.values())},
        pipeline=pipeline.name,
        line=chain.line,
        paradigms=pipeline.train.paradigms if pipeline.model.kind == "towers" else [],
        windows=list(windows.values()),
        warm_start=next((one for key, one in found.items() if is_warm_start(key)), None),
        stale_windows=list(stale),
        seen=links[-1].seen if links else {},
        model=store_of(chain.home).url(model) if model else "",
        published=published,
        gate=gate,
        pooled=pooled.model_copy(update={"warnings": warnings}),
        advice=_advice(pipeline, measured, "", pooled, gate),
        first_label=next(iter(pipeline.dataset.targets)) if evaluation.labels else "",
        labels={
            name: LabelSummary(
                pooled=of.pooled, advice=_advice(pipeline, measured, name, of.pooled, gate)
            )
            for name, of in evaluation.labels.items()
        },
        offset_words=offset_words(window.stream_offsets for window in windows.values()),
        rows_agree=agree,
        rows_line=line,
    )


def _known(
    pipeline: PipelineSpec,
    chain: ModelChain,
    links: Sequence[Link],
    stale: Mapping[str, str],
    evaluation: Evaluation,
) -> tuple[dict[str, Judgement], list[str]]:
    """What is known of each window now, and whose plans are forgotten."""
    ledger, store = Ledger(chain.home, pipeline.name, chain.line), store_of(chain.home)
    generations = {link.window: link.generation for link in links}
    plans, changed = ledger.plans(generations), ledger.data_changed(generations)
    gone = ledger.forgotten(generations) | (generations.keys() - plans.keys())
    stored = chain.judgements([link for link in links if link.window in gone])
    found: dict[str, Judgement] = {}
    for link in links:
        key, steps = link.window, link.files.get("steps")
        kept = stored.get(key)
        if kept is None:
            plan = ledger.plan(key, link.generation) if key in gone else plans[key]
            kept = window_facts(chain, plan, link)
        series = None if steps is None else shown_series(store.path(steps))
        now = opinion(kept, stale.get(key), changed.get(key), evaluation)
        found[key] = now.model_copy(update={"series": series})
    return found, [key for key in generations if key in gone]


def _advice(
    pipeline: PipelineSpec,
    windows: Sequence[Judgement],
    label: str,
    pooled: Pooled,
    gate: GateDecision | None,
) -> ToldAdvice | None:
    measured = pooled.differences if pooled.label == "complete" else ()
    is_of_gate = pipeline.dataset.label_key(pipeline.job.publish.label) == label
    benched = gate.benched if gate is not None and is_of_gate else ()
    found = advice_on_windows(pipeline, windows, label, measured, benched)
    return found.told() if found else None


def judge_windows(
    pipeline: PipelineSpec, chain: ModelChain, keys: Sequence[str], facts: RunFacts
) -> Summary:
    """Summarise trained windows, and store each one's part, kept when the scores are removed.

    Judgements of windows before them are completed first, see `complete_judgements`: advice rests
    on them too.
    """
    links = list(chain.newest_of(keys).values())
    if links:
        complete_judgements(pipeline, chain, links[0], links[-1])
    summary = summarise_windows(pipeline, chain, keys, facts)
    chain.judge_all([(window.name, judged(window)) for window in summary.windows])
    return summary


def _trained(chain: ModelChain, keys: Sequence[str]) -> list[Link]:
    found = chain.newest_of(keys)
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise ConfigError(
            f"window {missing} of pipeline {chain.pipeline!r} is not trained on line "
            f"{chain.line!r}: train it, or ask for other windows"
        )
    return list(found.values())


def _facts_of_jobs(chain: ModelChain, links: Sequence[Link]) -> RunFacts:
    """Restarts and seconds of the jobs that still exist and trained one of these links."""
    wanted = {(link.window, link.generation) for link in links}
    restarts: dict[str, int] = {}
    hung: list[str] = []
    phases: dict[str, float] = {}
    for job in jobs_of(chain.home, chain.pipeline, chain.line):
        if not any((each.key, each.generation) in wanted for each in job.windows):
            continue
        status, progress = job.status, job.progress
        for role, count in (status.restarts).items():
            restarts[role] = restarts.get(role, 0) + count
        hung += status.hung
        for name, seconds in (progress.phases_seconds if progress else {}).items():
            phases[f"trainer.{name}"] = phases.get(f"trainer.{name}", 0.0) + seconds
    return RunFacts(
        restarts=restarts,
        phases_seconds={name: round(seconds, 3) for name, seconds in phases.items()},
        reused_windows=[link.window for link in links if not is_warm_start(link.window)],
        notes=hung,
    )
