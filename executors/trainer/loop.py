"""Training one window after another: the loop between frames, steps, seals and links."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from forebay.config.specs.feeds import joined_labels, source_feeds
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.executors.judging.gate import gate_decision
from forebay.executors.judging.judges import EventJudges
from forebay.executors.label_join.join import LabelJoins
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import FileKind, Link
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.retention.collect import collect_after
from forebay.executors.role import Given
from forebay.executors.trainer.exports.export import CheckedExport
from forebay.executors.trainer.exports.inner_export import InnerExporter
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.remote_reader import FRAME_WAIT_SECONDS, RemoteReader, Silence
from forebay.executors.trainer.seal_copier import SealCopier
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.trainer.window.ending import WindowEnding
from forebay.executors.trainer.window.open_window import OpenWindow
from forebay.executors.trainer.window.opening import WindowOpener
from forebay.executors.trainer.window.parts import LoadedModel, TrainerParts
from forebay.executors.trainer.window.sealing import WindowSealer
from forebay.executors.trainer.window.steps import WindowSteps
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner


class WindowTrainer:
    """Owns the learner and the reader of one trainer process."""

    def __init__(
        self,
        given: Given,
        request: JobRequest,
        layout: FeatureLayout,
        make_learner: Callable[[], Learner],
    ) -> None:
        """make_learner: called again if rows have to be judged."""
        self._request = request
        parts = _parts_of(given, request, layout, make_learner)
        self._parts = parts
        self._export = CheckedExport(request, layout, parts.learner, parts.progress)
        second = None
        if request.publishes and parts.pipeline.job.publish.every is not None:
            second = CheckedExport(request, layout, make_learner(), parts.progress)
        self._inner = InnerExporter(parts, second)
        self._opener = WindowOpener(parts)
        self._steps = WindowSteps(parts)
        self._sealer = WindowSealer(parts)
        self._ending = WindowEnding(parts)

    def train(self, window: WindowRequest, position: int) -> None:
        """Train one window to its end, unless an earlier process of this job already did."""
        parts = self._parts
        last = position == len(self._request.windows) - 1
        link = parts.chain.link(window.key, window.generation)
        parts.chain.clear_store(parts.archive.folder(window.key))
        if link is None:
            link = self._train_to_end(window, position, export=last)
        elif last and "saved_model" not in link.files:
            parts.model.bring_to(link)
            for kind, stored in self._exported(link).items():
                link = parts.chain.add_file(link, kind, stored)
        self._remove_local(window)
        self._finish(link, publish=last and self._request.publishes)

    def close(self) -> None:
        self._inner.close()
        self._parts.copier.close()
        self._parts.reader.close()

    def _train_to_end(self, window: WindowRequest, position: int, *, export: bool) -> Link:
        parts = self._parts
        opened = self._opener.open(window)
        sealed = opened.last_seal
        parts.progress.begin(
            window,
            position,
            opened.step,
            sealed,
            opened.resumed_from_runtime,
            is_open=opened.plan.is_open,
        )
        done = sealed.progress if sealed else {}
        self._inner.begin(opened)
        parts.reader.begin(window.key, window.generation, done, opened.step)
        if sealed is None or not sealed.final:
            self._consume(opened)
            if opened.plan.is_open:
                opened.plan = self._opener.closed(opened)
            with parts.progress.phase("store"):
                parts.copier.finish()
                self._inner.finish()
            sealed = self._sealer.seal(opened, final=True)
        link = self._ending.link(opened, sealed)
        parts.reader.sealed(sealed.step, sealed.progress)
        files = self._ending.stored(opened)
        if export:
            files |= self._exported(link.model_copy(update={"files": files}))
        link = link.model_copy(update={"files": files, "finished_at": datetime.now(UTC)})
        parts.chain.record(link)
        parts.model.ended(link)
        return link

    def _exported(self, link: Link) -> dict[FileKind, Stored]:
        chain = self._parts.chain
        folder = chain.folder(link.window, link.generation)
        return self._export.store(link, chain, self._parts.archive, folder)

    def _consume(self, opened: OpenWindow) -> None:
        parts = self._parts
        silence = Silence(parts.reader, opened.request.key, parts.pipeline.job)
        while True:
            with parts.progress.phase("wait"):
                frame = parts.reader.next(FRAME_WAIT_SECONDS)
            if frame is None:
                if parts.reader.finished():
                    return
                if not parts.reader.grows:  # a stream that is silent ends nothing
                    silence.lasted(FRAME_WAIT_SECONDS)
            else:
                silence.broken()
                with parts.progress.phase("train"):
                    self._steps.use(opened, frame)
            exports = self._inner.is_due(opened)
            if exports or self._sealer.is_due(opened):
                sealed = self._sealer.seal(opened, final=False)
                if exports:
                    self._inner.sealed(opened, sealed)
                parts.copier.sealed(opened.store)
                parts.reader.sealed(opened.step, sealed.progress)

    def _remove_local(self, window: WindowRequest) -> None:
        """The link names what is kept of the window: its local folder is no longer needed."""
        folder = self._parts.chain.folder(window.key, window.generation)
        if folder.exists():
            shutil.rmtree(folder)
        with contextlib.suppress(OSError):  # it holds another generation
            folder.parent.rmdir()

    def _finish(self, link: Link, *, publish: bool) -> None:
        chain, pipeline = self._parts.chain, self._parts.pipeline
        if publish and pipeline.job.publish.when != "never":
            gate = gate_decision(chain, link)
            chain.publish(link, datetime.now(UTC), "" if gate is None else gate.words)
        collect_after(f"window {link.window} is trained", chain.home, pipeline, chain.line)
        self._parts.progress.finished(link.window)


def _streams(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> list[str]:
    return [name for name, feed in source_feeds(pipeline, sources).items() if feed == "stream"]


def _parts_of(
    given: Given, request: JobRequest, layout: FeatureLayout, make_learner: Callable[[], Learner]
) -> TrainerParts:
    pipeline, sources = request.pipeline_spec(), request.source_specs()
    home = Home(Path(request.home))
    learner = make_learner()
    fingerprint = model_fingerprint_of(pipeline, sources)
    chain = ModelChain(home, pipeline.name, request.line, given.lease_epoch)
    archive = WindowArchive(store_of(home), pipeline.name, request.line)
    joins = bool(joined_labels(pipeline)) and len(learner.paradigms) > 0
    kept = pipeline.job.checkpoints_kept
    return TrainerParts(
        pipeline=pipeline,
        sources=sources,
        model_fingerprint=fingerprint,
        runtime=runtime_of(home),
        learner=learner,
        model=LoadedModel(learner, chain, archive, fingerprint, kept),
        ledger=Ledger(home, pipeline.name, request.line),
        chain=chain,
        reader=RemoteReader(given.link, layout, pipeline.use_names, given.attempt),
        progress=ProgressReporter(
            given.link,
            pipeline.use_names,
            len(request.windows),
            _streams(pipeline, sources),
            slo.total_seconds() if (slo := pipeline.job.continuous.lag_slo) is not None else None,
        ),
        archive=archive,
        copier=SealCopier(chain, archive, fingerprint),
        join=LabelJoins(chain, pipeline, sources) if joins else None,
        judges=EventJudges(pipeline, sources, layout, chain, make_learner, archive.load),
    )
