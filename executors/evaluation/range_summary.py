"""The summary of a range of trained windows from ledger and model chain alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import is_warm_start
from forebay.datatasks.ledger import Ledger
from forebay.errors import ConfigError
from forebay.executors.evaluation.summary import Json, build_summary
from forebay.executors.evaluation.windows import evaluate
from forebay.executors.job.folders import jobs_of
from forebay.executors.job.progress import read_progress
from forebay.executors.model_line.chain import Link, ModelChain


def summarise_windows(
    pipeline: PipelineSpec,
    chain: ModelChain,
    keys: Sequence[str],
    facts: Mapping[str, Any] | None = None,
) -> Json:
    """Everything that a report needs about windows that are all trained.

    A line's warm start is part of every range of it: the model's row sums count it too.

    Args:
        pipeline: whose windows they are.
        chain: the model line that trained them.
        keys: the windows, in order.
        facts: what only the trainer of the windows knows; without it, what the folders of
            their jobs say.

    Raises:
        ConfigError: when one of them is not trained.
        DataError: when the plan that a model was trained from is gone.
    """
    ledger = Ledger(chain.home, pipeline.name)
    links = [_trained(chain, key) for key in keys]
    warm = _warm_start(chain)
    plans = [ledger.plan(link.window, link.generation) for link in links]
    evaluation = evaluate(pipeline, chain, keys)
    if facts is None:
        facts = _facts_of_jobs(chain, [*([warm] if warm else []), *links])
    return build_summary(
        pipeline,
        chain,
        plans,
        ledger.plan(warm.window, warm.generation) if warm else None,
        evaluation,
        {"stale_windows": chain.stale(), "published": _published(chain), **facts},
    )


def _trained(chain: ModelChain, key: str) -> Link:
    link = chain.newest(key)
    if link is None:
        raise ConfigError(
            f"window {key} of pipeline {chain.pipeline!r} is not trained on line {chain.line!r}: "
            "train it, or ask for other windows"
        )
    return link


def _warm_start(chain: ModelChain) -> Link | None:
    first = next(iter(chain.windows()), None)
    return chain.newest(first) if first is not None and is_warm_start(first) else None


def _published(chain: ModelChain) -> Json | None:
    published = chain.published()
    return published.model_dump(mode="json") if published else None


def _facts_of_jobs(chain: ModelChain, links: Sequence[Link]) -> Json:
    """Restarts and seconds of the jobs that are still there and trained one of these links."""
    wanted = {(link.window, link.generation) for link in links}
    restarts: dict[str, int] = {}
    phases: dict[str, float] = {}
    for job in jobs_of(chain.home, chain.pipeline, chain.line):
        if not any((each.key, each.generation) in wanted for each in job.request.windows):
            continue
        status, progress = job.status, read_progress(job.folder.path)
        for role, count in (status.restarts).items():
            restarts[role] = restarts.get(role, 0) + count
        for name, seconds in (progress.phases_seconds if progress else {}).items():
            phases[f"trainer.{name}"] = phases.get(f"trainer.{name}", 0.0) + seconds
    return {
        "restarts": restarts,
        "phases_seconds": {name: round(seconds, 3) for name, seconds in phases.items()},
        "trained_windows": [],
        "reused_windows": [link.window for link in links if not is_warm_start(link.window)],
        "storage_calls": None,
        "notes": [],
    }
