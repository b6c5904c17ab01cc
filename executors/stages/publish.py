"""Publication of one window's model: it serves from then on, or the result says why not."""

from __future__ import annotations

from datetime import UTC, datetime

from forebay.errors import InfrastructureError, UsageError
from forebay.executors.judging.gate import gate_decision
from forebay.executors.retention.collect import collect_after
from forebay.executors.serving.serving_path import ServingPath
from forebay.executors.stages.results import PublishResult
from forebay.executors.stages.target import StageTarget
from forebay.home.store.open import store_of


def publish_window(target: StageTarget, generation: int) -> PublishResult:
    """Let a generation of a window serve, if the pipeline publishes and nothing later serves.

    A repeated call has the same result. Afterwards the line's serving path is brought up, whatever
    left it behind, and files of older windows that are no longer kept are removed; a failure there
    is only a warning.

    Raises:
        DataError: when part of its SavedModel is missing or damaged.
        UsageError: when that generation is not trained.
        InfrastructureError: when its SavedModel does not exist.
        ForebayError: see `ServingPath.bring_up`; it serves by then.
    """
    spec, chain, key = target.pipeline, target.chain, target.key
    candidate = chain.candidate(key, generation)
    if candidate is None:
        raise UsageError(
            f"generation {generation} of window {key} is not trained on line {target.line!r}: "
            "there is nothing to publish"
        )
    link, reason = candidate
    if spec.job.publish.when == "never":
        reason = f"pipeline {spec.name!r} publishes nothing (job.publish.when: never)"
    gate, path = gate_decision(chain, link), ""
    words = "" if gate is None else gate.words
    if not reason:
        model, store = link.files.get("saved_model"), store_of(target.home)
        if model is None or not store.is_there(model):
            gone = None if model is None else store.url(model)
            raise _without_model(key, gone, spec.job.exports_kept)
        store.verify(model)  # a model server has no checksums
        reason, path = chain.publish(link, datetime.now(UTC), words), store.url(model)
    collect_after(f"window {key} is published", target.home, spec, target.line)
    if reason:
        serving = chain.published()
        path = serving.path if serving else ""
    ServingPath(target.project, spec, chain).bring_up()
    return PublishResult(
        state="kept" if reason else "published",
        window=key,
        generation=generation,
        reason=reason,
        path=path,
        variant="" if gate is None else gate.variant,
        gate=words,
    )


def _without_model(window: str, gone: str | None, kept: int) -> InfrastructureError:
    why = (
        "it was trained in the middle of a longer job, or is no longer kept "
        f"(job.publish.windows_kept is {kept})"
        if gone is None
        else f"{gone} is gone"
    )
    return InfrastructureError(
        f"window {window} has no exported model: {why}. Train the window again to have it exported"
    )
