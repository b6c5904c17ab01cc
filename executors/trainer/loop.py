"""Training one window after another: the loop between frames, steps, seals and links."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from forebay.config.feeds import has_stream
from forebay.config.label_join import joins_labels
from forebay.datatasks.ledger import Ledger
from forebay.datatasks.plans import WindowPlan
from forebay.datatasks.tasks import TaskProgress
from forebay.errors import ForebayError, InfrastructureError, TrainingError
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.executors.judging.judge import EventJudge
from forebay.executors.judging.judges import EventJudges
from forebay.executors.label_join.joins import LabelJoins
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import FileKind, Link, Parent, ReadRows
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.model_line.start import (
    require_adjoining,
    require_agreement,
    require_checkpoint,
    require_heard,
    require_learnt,
    require_no_gap,
)
from forebay.executors.retention.collect import collect_after
from forebay.executors.trainer.counters import DurableCounters
from forebay.executors.trainer.export import CheckedExport
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.executors.trainer.seal_copier import SealCopier
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.window_files.checkpoints import Beginning, CheckpointStore, Seal
from forebay.executors.window_files.dead_letters import DEAD_FOLDER
from forebay.executors.window_files.scores import SCORES_FOLDER, ScoreWriter
from forebay.executors.window_files.seal_copies import COUNTERS_NAME
from forebay.executors.window_files.steps import Counts, StepSeries
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.home.store import Stored, store_of
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.guard_alarm import GuardAlarm
from forebay.mixture.learner import Learner
from forebay.mixture.left_out import learnt_and_left_out
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums
from forebay.system.trees import remove_tree

FRAME_WAIT_SECONDS = 0.5
# Beyond the time in which a data executor or driver that hangs is ended.
SILENCE_SECONDS = 120.0
_LOG = logging.getLogger(__name__)
COUNTERS = ("used_rows", "resumed_from_step")


@dataclass
class _Open:
    """The window that is being trained."""

    request: WindowRequest
    plan: WindowPlan
    parent: Link | None
    base_step: int
    base_seen: list[RowSums]
    base_learnt: dict[str, list[int]]
    store: CheckpointStore
    scores: ScoreWriter | None
    judge: EventJudge | None
    counters: DurableCounters
    series: StepSeries
    started_at: datetime
    window_step: int = 0
    sealed_step: int = 0
    last_seal: Seal | None = None
    resumed_from_runtime: str | None = None

    @property
    def step(self) -> int:
        """From the start of the model line."""
        return self.base_step + self.window_step


class WindowTrainer:
    """Owns the learner and the reader of one trainer process."""

    def __init__(
        self,
        job_dir: Path,
        request: JobRequest,
        layout: FeatureLayout,
        make_learner: Callable[[], Learner],
        lease_epoch: int | None,
    ) -> None:
        """Connects to the driver; nothing is loaded before the first window.

        make_learner: makes the one that learns, and another one where rows have to be judged.
        lease_epoch: see `ModelChain`.
        """
        pipeline = request.pipeline_spec()
        home = Home(Path(request.home))
        self._request = request
        self._pipeline = pipeline
        self._learner = learner = make_learner()
        self._names = pipeline.source_names
        self._sources = request.source_specs()
        self._has_stream = has_stream(pipeline, self._sources)
        self._model_fingerprint = model_fingerprint_of(pipeline, self._sources)
        self._ledger = Ledger(home, pipeline.name, request.line)
        self._chain = ModelChain(home, pipeline.name, request.line, lease_epoch)
        self._reader = RemoteReader(job_dir, layout, self._names)
        self._progress = ProgressReporter(job_dir, self._names, len(request.windows))
        self._export = CheckedExport(request, layout, learner, self._progress)
        join = joins_labels(pipeline) and len(learner.paradigms) > 0
        self._join = LabelJoins(self._chain, pipeline, self._sources) if join else None
        self._archive = WindowArchive(store_of(home), pipeline.name, request.line)
        load = self._archive.load
        self._judges = EventJudges(pipeline, self._sources, layout, self._chain, make_learner, load)
        self._copier = SealCopier(self._chain, self._archive, self._model_fingerprint)
        self._runtime = runtime_of(home)
        self._alarm = GuardAlarm(learner)
        self._standing: Parent | None = None  # the link that the learner's variables are at

    def train(self, window: WindowRequest, position: int) -> None:
        """Train one window to its end, unless an earlier process of this job already did."""
        last = position == len(self._request.windows) - 1
        link = self._chain.link(window.key, window.generation)
        self._chain.clear_store(self._archive.folder(window.key))
        if link is None:
            link = self._train_to_end(window, position, export=last)
        elif last and "saved_model" not in link.files:
            self._bring_to(link)
            for kind, stored in self._exported(window, link).items():
                link = self._chain.add_file(link, kind, stored)
        self._remove_local(window)
        self._finish(link, publish=last and self._request.publishes)

    def close(self) -> None:
        """Give connections back."""
        self._copier.close()
        self._reader.close()

    def _train_to_end(self, window: WindowRequest, position: int, *, export: bool) -> Link:
        """Train, seal, judge, export and link: a link of the job's end has what serves it."""
        opened = self._open(window)
        self._begin(opened, position)
        sealed = opened.last_seal
        if sealed is None or not sealed.final:
            self._consume(opened)
            with self._progress.phase("store"):
                self._copier.finish()
            sealed = self._seal(opened, final=True)
        link = self._link(opened, sealed)
        self._judge(opened, sealed, link)
        self._reader.sealed(sealed.step, sealed.progress)
        files = self._stored(opened)
        if export:
            files |= self._exported(window, link.model_copy(update={"files": files}))
        link = link.model_copy(update={"files": files, "finished_at": datetime.now(UTC)})
        self._chain.record(link)
        self._standing = link.name
        return link

    def _judge(self, opened: _Open, sealed: Seal, link: Link) -> None:
        """Let a window become a link; one that may not is begun anew when it is trained again."""
        learnt = [sums.rows for sums in sealed.seen]
        if self._learner.paradigms and not opened.request.warm_start:
            learnt = sealed.learnt[self._learner.paradigms[0]]
        try:
            require_agreement(self._chain, opened.plan, link)
            require_learnt(self._chain, link, learnt)
        except ForebayError:
            self._chain.drop_seal(link.window, link.generation)
            remove_tree(opened.store.folder)
            raise

    def _stored(self, opened: _Open) -> dict[FileKind, Stored]:
        """Bytes first: what the link is going to name is in the store before it."""
        window, generation = opened.request.key, opened.request.generation
        found = opened.store.newest()
        if found is None:
            raise InfrastructureError(f"window {window}: its final checkpoint is gone")
        seal, model = found
        with self._progress.phase("store"):
            local = self._chain.folder(window, generation)
            return self._archive.put_window(window, generation, local, seal, model.parent)

    def _exported(self, window: WindowRequest, link: Link) -> dict[FileKind, Stored]:
        return self._export.store(window, link, self._chain, self._archive)

    def _remove_local(self, window: WindowRequest) -> None:
        """The link names what is kept of the window: its own folder has served."""
        folder = self._chain.folder(window.key, window.generation)
        if folder.exists():
            shutil.rmtree(folder)
        with contextlib.suppress(OSError):  # it holds another generation
            folder.parent.rmdir()

    def _open(self, window: WindowRequest) -> _Open:
        folder = self._chain.folder(window.key, window.generation)
        store = CheckpointStore(folder)
        with self._progress.phase("load"):
            parent = self._chain.before(window)
            self._copier.bring(window.key, window.generation, store)
            plan = self._ledger.plan(window.key, window.generation)
            # Whoever submitted it looked before the line was this job's.
            require_no_gap(self._chain, self._pipeline.dataset.grid, plan.as_window)
            require_heard(self._chain, self._pipeline, self._sources, plan)
            before = None if parent is None else self._plan_of(parent)
            if before is not None:
                require_adjoining(self._chain, self._sources, plan, before)
            begun = Beginning(
                plan.fingerprint,
                _parent_of(parent),
                self._model_fingerprint,
                self._seen_by(parent),
            )
            store.drop_others(begun)
            seal = store.load(self._learner)
            if seal is None:
                remove_tree(folder / DEAD_FOLDER)  # all rows are read again
                self._load_parent(parent)
            if self._join is not None:
                self._join.begin(plan, parent)
        self._learner.set_phase(warm_start=window.warm_start)
        scores, judge = None, None
        if not window.warm_start or self._join is not None:
            columns = [column.name for column in self._learner.columns]
            scores = self._judges.writer(folder / SCORES_FOLDER, columns)
            scores.restore(seal.scores if seal else [])
            if self._join is not None:
                self._join.resume(plan, folder / SCORES_FOLDER)
            if not window.warm_start:
                judge = self._judges.judge(plan, parent, columns, scores)
        opened = _Open(
            request=window,
            plan=plan,
            parent=parent,
            base_step=seal.step - seal.window_step if seal else (parent.step if parent else 0),
            base_seen=seal.base_seen if seal else self._learner.seen(),
            base_learnt=seal.base_learnt if seal else self._learnt(),
            store=store,
            scores=scores,
            judge=judge,
            counters=DurableCounters(folder / COUNTERS_NAME, COUNTERS),
            series=StepSeries(folder, self._names),
            started_at=datetime.now(UTC),
            last_seal=seal,
        )
        if seal is not None:
            opened.window_step = opened.sealed_step = seal.window_step
            opened.resumed_from_runtime = self._other_runtime(seal)
            opened.series.restore(seal.window_step, _rows_of(seal))
        # An attempt that was begun from another model is not what this one resumes.
        resumed = opened.counters.value("resumed_from_step")
        opened.counters.add("resumed_from_step", opened.window_step - resumed)
        self._standing = None
        return opened

    def _plan_of(self, link: Link) -> WindowPlan | None:
        """What a link was trained from; None where no line has that plan any more."""
        return self._ledger.plans({link.window: link.generation}).get(link.window)

    def _seen_by(self, link: Link | None) -> list[RowSums] | None:
        return None if link is None else [link.seen.get(name, RowSums()) for name in self._names]

    def _other_runtime(self, seal: Seal) -> str | None:
        """Where a window was sealed that is continued here; None where that is here."""
        if seal.runtime == self._runtime:
            return None
        _LOG.info(
            "window %s resumed from step %d, sealed by another host (%s)",
            seal.window,
            seal.window_step,
            seal.runtime,
        )
        return seal.runtime

    def _load_parent(self, parent: Link | None) -> None:
        """Bring the learner to where the window before ended."""
        if parent is None:
            if self._standing is not None:
                raise InfrastructureError("a window without a parent follows a trained window")
            return
        self._chain.require_same_fingerprint(parent, self._model_fingerprint)
        self._bring_to(parent)

    def _begin(self, opened: _Open, position: int) -> None:
        sealed: Mapping[str, TaskProgress] = opened.last_seal.progress if opened.last_seal else {}
        self._progress.begin(
            opened.request, position, opened.step, opened.last_seal, opened.resumed_from_runtime
        )
        self._reader.begin(opened.request.key, opened.request.generation, sealed, opened.step)

    def _consume(self, opened: _Open) -> None:
        every = self._pipeline.job.checkpoint.every_steps
        silent_seconds, orders = 0.0, self._reader.orders
        while True:
            with self._progress.phase("wait"):
                frame = self._reader.next(FRAME_WAIT_SECONDS)
            if frame is None:
                if self._reader.finished():
                    return
                silent_seconds += FRAME_WAIT_SECONDS
                if orders != self._reader.orders:
                    silent_seconds, orders = 0.0, self._reader.orders
                self._check_silence(opened, silent_seconds)
                continue
            silent_seconds = 0.0
            with self._progress.phase("train"):
                self._use(opened, frame)
            if opened.window_step - opened.sealed_step >= every:
                sealed = self._seal(opened, final=False)
                self._copier.sealed(opened.store)
                self._reader.sealed(opened.step, sealed.progress)

    def _check_silence(self, opened: _Open, silent_seconds: float) -> None:
        """By looks, each of which waits: while this process stood still, nothing could come."""
        deadlines = self._pipeline.job.failover.progress_deadlines
        hung = max(deadlines.data, deadlines.driver).total_seconds()
        if silent_seconds > SILENCE_SECONDS + hung:
            raise InfrastructureError(
                f"window {opened.request.key}: no rows came for {silent_seconds:.0f} s although "
                "not all tasks ended; see the logs of driver and data executors"
            )

    def _use(self, opened: _Open, frame: Frame) -> None:
        """Score, write the scores, then learn: the order is what makes metrics progressive."""
        minibatch = frame.minibatch
        if minibatch is not None and len(minibatch):
            if self._join is not None and minibatch.feed == "batch":
                minibatch = self._join.joined(minibatch)
            if opened.scores is not None and opened.request.warm_start:
                self._keep_published(opened.scores, minibatch)
            elif opened.scores is not None:
                self._keep_scores(opened.scores, minibatch)
            if opened.judge is not None:
                opened.judge.add(minibatch)
            opened.series.lost(self._learn(opened, minibatch), minibatch.feed)
            opened.window_step += 1
            opened.counters.add("used_rows", len(minibatch))
            counts = np.bincount(minibatch.sources, minlength=len(self._names))
            lag_seconds = self._progress.stepped(counts, frame.hour, opened.step)
            opened.series.stepped(counts, lag_seconds)
        self._reader.used(frame)

    def _learn(self, opened: _Open, minibatch: Minibatch) -> dict[str, float]:
        try:
            return self._learner.learn(minibatch)
        except TrainingError as error:
            counts = np.bincount(minibatch.sources, minlength=len(self._names)).tolist()
            held = [each for each in zip(counts, self._names, strict=True) if each[0]]
            rows = ", ".join(f"{count} of {name}" for count, name in held)
            raise TrainingError(
                f"window {opened.request.key}, step {opened.window_step + 1}: {error}. Rows of the "
                f"minibatch: {rows}. The window stays untrained and the model that serves goes on. "
                "Way out: bound what the features may be (transform, scale, bucketise), or lower "
                "model.dense_learning_rate and model.embedding_learning_rate, then train it again"
            ) from error

    def _learnt(self) -> dict[str, list[int]]:
        return learnt_and_left_out(self._learner.learnt(), self._learner.left_out())

    def _keep_scores(self, scores: ScoreWriter, minibatch: Minibatch) -> None:
        """Stream rows are judged; without any stream, batch rows are, their labels complete."""
        judged = minibatch.feed == "stream" or not self._has_stream
        if judged and self._learner.paradigms:
            scores.append(minibatch, self._learner.score(minibatch))
        if minibatch.feed == "batch":
            scores.append(minibatch, None)
        elif self._join is not None:
            self._join.add(minibatch)

    def _keep_published(self, scores: ScoreWriter, minibatch: Minibatch) -> None:
        """A warm start scores nothing; batch rows after it ask what its stream said."""
        if minibatch.feed == "stream" and self._join is not None:
            scores.append_published(minibatch)
            self._join.add(minibatch)

    def _seal(self, opened: _Open, *, final: bool) -> Seal:
        with self._progress.phase("seal"):
            opened.series.write(final=final)
            opened.counters.sync()
            if opened.judge is not None:
                opened.judge.flush()
            self._alarm.look(opened.request.key, opened.window_step)
            seal = Seal(
                window=opened.request.key,
                generation=opened.request.generation,
                step=opened.step,
                window_step=opened.window_step,
                final=final,
                plan=opened.plan.fingerprint,
                parent=_parent_of(opened.parent),
                model_fingerprint=self._model_fingerprint,
                progress=self._reader.progress(),
                base_seen=opened.base_seen,
                seen=self._learner.seen(),
                base_learnt=opened.base_learnt,
                learnt=self._learnt(),
                scores=opened.scores.seal() if opened.scores is not None else [],
                sealed_at=datetime.now(UTC),
                runtime=self._runtime,
            )
            sealed = opened.store.write(self._learner, seal)
        opened.sealed_step = opened.window_step
        opened.last_seal = sealed
        self._progress.sealed(sealed)
        return sealed

    def _link(self, opened: _Open, sealed: Seal) -> Link:
        trained_rows = int(_rows_of(sealed).sum())
        return Link(
            window=sealed.window,
            start=opened.request.start,
            end=opened.request.end,
            generation=sealed.generation,
            parent=sealed.parent,
            step=sealed.step,
            steps=sealed.window_step,
            base_seen=dict(zip(self._names, sealed.base_seen, strict=True)),
            seen=dict(zip(self._names, sealed.seen, strict=True)),
            read=_read_rows(self._names, sealed.progress),
            learnt=_learnt_rows(self._names, sealed),
            files={},
            resumed_from_step=opened.counters.value("resumed_from_step"),
            resumed_from_runtime=opened.resumed_from_runtime,
            reread_rows=opened.counters.value("used_rows")
            - trained_rows
            + self._reader.dropped_rows(),
            model_fingerprint=self._model_fingerprint,
            started_at=opened.started_at,
            finished_at=datetime.now(UTC),
        )

    def _finish(self, link: Link, *, publish: bool) -> None:
        if publish and self._pipeline.job.publish.when != "never":
            self._chain.publish(link, datetime.now(UTC))
        event = f"window {link.window} is trained"
        collect_after(event, self._chain.home, self._pipeline, self._chain.line)
        self._progress.finished(link.window)

    def _bring_to(self, link: Link) -> None:
        """Load a link's model where the learner stands elsewhere."""
        if self._standing != link.name:
            require_checkpoint(self._chain, link, self._pipeline.job.checkpoints_kept)
            self._archive.load(self._learner, link)
            self._standing = link.name


def _parent_of(before: Link | None) -> Parent | None:
    return before.name if before else None


def _read_rows(names: Sequence[str], progress: Mapping[str, TaskProgress]) -> dict[str, ReadRows]:
    """What data executors read of each source, from where each of its tasks ended."""
    found = {name: ReadRows() for name in names}
    for task, at in progress.items():
        name = task.rpartition("/")[0]
        before = found[name]
        found[name] = ReadRows(
            rows=before.rows + at.rows_read,
            dead=before.dead + at.dead_rows,
            late=before.late + at.late_rows,
            odd_timestamps=before.odd_timestamps + at.odd_timestamps,
            first_odd=before.first_odd or at.first_odd,
            label_not_known=before.label_not_known + at.label_not_known,
            offsets=before.offsets.plus(at.offsets),
        )
    return found


def _learnt_rows(names: Sequence[str], seal: Seal) -> dict[str, dict[str, int]]:
    """Rows that each variant learnt of the window, by source; and left out, if any were."""
    none = [0] * len(names)  # of a line whose windows did not count it yet
    return {
        name: {
            paradigm: count
            for paradigm, rows in seal.learnt.items()
            if (count := rows[at] - seal.base_learnt.get(paradigm, none)[at]) or "/" not in paradigm
        }
        for at, name in enumerate(names)
        if seal.learnt
    }


def _rows_of(seal: Seal) -> Counts:
    """Rows of the window that a seal holds, by source."""
    pairs = zip(seal.base_seen, seal.seen, strict=True)
    return np.array([after.rows - before.rows for before, after in pairs], np.int64)
