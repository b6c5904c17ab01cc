"""The summary of a range of trained windows, from only the ledger and the model chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import is_warm_start
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import ConfigError
from forebay.executors.evaluation.summary import Json, build_summary, rows_verdict
from forebay.executors.evaluation.windows import complete_judgements, evaluate
from forebay.executors.job.stored_jobs import jobs_of
from forebay.executors.judging.gate import gate_decision
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.model_line.serving import pinned_words


def summarise_windows(
    pipeline: PipelineSpec,
    chain: ModelChain,
    keys: Sequence[str],
    facts: Mapping[str, Any] | None = None,
) -> Json:
    """Everything that a report needs about windows that are all trained.

    A line's warm start is part of every range of it: the model's row sums count it too.

    facts: what only the run that trained the windows knows; by default, what their jobs say.

    Raises:
        ConfigError: when one of them is not trained.
        DataError: when the plan that a model was trained from is gone, and it was never judged.
    """
    ledger = Ledger(chain.home, pipeline.name, chain.line)
    links = _trained(chain, keys)
    evaluation = evaluate(pipeline, chain, links)
    first = chain.first()
    if first is not None and is_warm_start(first.window):
        links = [first, *links]
    generations = {link.window: link.generation for link in links}
    plans, changed = ledger.plans(generations), ledger.data_changed(generations)
    gone = ledger.forgotten(generations) | (generations.keys() - plans.keys())
    forgotten = [link for link in links if link.window in gone]
    judged = chain.judgements(forgotten)
    for link in forgotten:
        if link.window not in judged:
            plans[link.window] = ledger.plan(link.window, link.generation)
    if facts is None:
        facts = _facts_of_jobs(chain, links)
    notes = [*facts.get("notes", ()), *evaluation.notes]
    if forgotten:
        names = ", ".join(link.window for link in forgotten)
        notes.append(
            f"forgotten windows: {names}; the figures of their rows are from before that, and the "
            "next run plans and trains them again"
        )
    gate = gate_decision(chain, links[-1]) if links else None
    published = chain.published()
    if published is not None and published.pinned:
        words = pinned_words(published.window, chain.pipeline, chain.line)
        notes += [] if any(words in note for note in notes) else [words]
    facts = {
        "published": published.model_dump(mode="json", exclude={"stored"}) if published else None,
        "gate": None if gate is None else gate.model_dump(),
        **facts,
        "notes": notes,
    }
    return build_summary(pipeline, chain, links, plans, judged, changed, evaluation, facts)


def judge_windows(pipeline: PipelineSpec, chain: ModelChain, summary: Json) -> None:
    """Store a summary's part on each window as its judgement, kept when the scores are removed.

    Judgements of windows before them are completed, see `complete_judgements`.
    """
    judged = []
    for window in summary["windows"]:
        agree, line = rows_verdict([window])
        facts = {name: value for name, value in window.items() if name != "series"}
        name = Parent(window=window["window"], generation=window["generation"])
        judged.append((name, {**facts, "rows_agree": agree, "rows_line": line}))
    chain.judge_all(judged)
    links = list(chain.newest_of(window["window"] for window in summary["windows"]).values())
    if links:
        complete_judgements(pipeline, chain, links[0], links[-1])


def _trained(chain: ModelChain, keys: Sequence[str]) -> list[Link]:
    found = chain.newest_of(keys)
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise ConfigError(
            f"window {missing} of pipeline {chain.pipeline!r} is not trained on line "
            f"{chain.line!r}: train it, or ask for other windows"
        )
    return list(found.values())


def _facts_of_jobs(chain: ModelChain, links: Sequence[Link]) -> Json:
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
    return {
        "restarts": restarts,
        "phases_seconds": {name: round(seconds, 3) for name, seconds in phases.items()},
        "trained_windows": [],
        "reused_windows": [link.window for link in links if not is_warm_start(link.window)],
        "storage_calls": None,
        "notes": hung,
    }
