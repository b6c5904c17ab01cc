"""WindowOpener: brings a trainer to where a window begins, or to its newest seal."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.job.request import WindowRequest
from forebay.executors.judging.judge import EventJudge
from forebay.executors.model_line.adjoining import covered_by, require_adjoining
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.start import require_heard, require_no_gap
from forebay.executors.trainer.window.open_window import COUNTERS, DurableCounters, OpenWindow
from forebay.executors.trainer.window.parts import TrainerParts
from forebay.executors.trainer.window.sealed_rows import learnt_rows_of, window_rows
from forebay.executors.window_files.checkpoints import Beginning, CheckpointStore, Seal
from forebay.executors.window_files.dead_letters import DEAD_FOLDER, LetterFile, SealedLetters
from forebay.executors.window_files.scores import SCORES_FOLDER, ScoreWriter
from forebay.executors.window_files.seal_copies import COUNTERS_NAME
from forebay.executors.window_files.steps import StepSeries
from forebay.mixture.row_sums import RowSums
from forebay.system.files.trees import remove_tree

_LOG = logging.getLogger(__name__)


class WindowOpener:
    def __init__(self, parts: TrainerParts) -> None:
        self._parts = parts

    def open(self, window: WindowRequest) -> OpenWindow:
        """On return the learner is where the window continues.

        Raises:
            DataError: when a seal or checkpoint is missing or damaged, or of a different model.
            InfrastructureError: when database, store or disk fail.
        """
        parts = self._parts
        folder = parts.chain.folder(window.key, window.generation)
        store = CheckpointStore(folder)
        with parts.progress.phase("load"):
            parent = parts.chain.before(window)
            parts.copier.bring(window.key, window.generation, store)
            plan = self._plan(window, parent)
            seal = self._load(plan, parent, store)
            if parts.join is not None:
                parts.join.begin(plan, parent)
        letters = self._letters(store, seal)
        scores, judge = self._writers(window, plan, parent, seal)
        opened = OpenWindow(
            request=window,
            plan=plan,
            parent=parent,
            base_step=seal.step - seal.window_step if seal else (parent.step if parent else 0),
            base_seen=seal.base_seen if seal else parts.learner.seen(),
            base_learnt=seal.base_learnt if seal else learnt_rows_of(parts.learner),
            store=store,
            letters=letters,
            scores=scores,
            judge=judge,
            counters=DurableCounters(folder / COUNTERS_NAME, COUNTERS),
            series=StepSeries(folder, parts.names),
            started_at=datetime.now(UTC),
            last_seal=seal,
        )
        self._resume(opened)
        parts.model.moves()
        return opened

    def _plan(self, window: WindowRequest, parent: Link | None) -> WindowPlan:
        """The window's plan, checked again: the submitter checked before this job had the line."""
        parts = self._parts
        plan = parts.ledger.plan(window.key, window.generation)
        require_no_gap(parts.chain, parts.pipeline.dataset.grid, plan.as_window)
        self._require_figures(plan, parent)
        return plan

    def closed(self, opened: OpenWindow) -> WindowPlan:
        """What an open window has become, once all its rows are used.

        Raises:
            ForebayError: when it may not be trained: only its figures show that.
        """
        window = opened.request
        plan = self._parts.ledger.plan(window.key, window.generation)
        self._require_figures(plan, opened.parent)
        return plan

    def _require_figures(self, plan: WindowPlan, parent: Link | None) -> None:
        parts = self._parts
        require_heard(parts.chain, parts.pipeline, parts.sources, plan)
        require_adjoining(parts.chain, parts.sources, plan, covered_by(parent))

    def _load(self, plan: WindowPlan, parent: Link | None, store: CheckpointStore) -> Seal | None:
        parts = self._parts
        names, parent_name = parts.names, parent.name if parent else None
        seen = [parent.seen.get(name, RowSums()) for name in names] if parent else None
        begun = Beginning(plan.begun_as, parent_name, parts.model_fingerprint, seen)
        store.drop_others(begun)
        seal = store.load(parts.learner)
        if seal is None:
            remove_tree(store.window_folder / DEAD_FOLDER)  # all rows are read again
            parts.model.bring_to_parent(parent)
        return seal

    def _letters(self, store: CheckpointStore, seal: Seal | None) -> LetterFile:
        parts = self._parts
        uses, sources = parts.pipeline.uses, parts.sources
        most = {use.name: sources[use.source].dead_letter_bytes_max for use in uses}
        letters = LetterFile(store.window_folder, most, seal.letters if seal else SealedLetters())
        if seal is not None:
            parts.archive.require_letters(seal, store.window_folder)
        return letters

    def _writers(
        self, window: WindowRequest, plan: WindowPlan, parent: Link | None, seal: Seal | None
    ) -> tuple[ScoreWriter | None, EventJudge | None]:
        parts = self._parts
        if window.warm_start and parts.join is None:
            return None, None
        folder: Path = parts.chain.folder(window.key, window.generation) / SCORES_FOLDER
        columns = [column.name for column in parts.learner.columns]
        scores = parts.judges.writer(folder, columns)
        scores.restore(seal.scores if seal else [])
        if parts.join is not None:
            parts.join.resume(plan, folder)
        if window.warm_start:
            return scores, None
        return scores, parts.judges.judge(plan, parent, columns, scores)

    def _resume(self, opened: OpenWindow) -> None:
        seal = opened.last_seal
        if seal is not None:
            opened.window_step = opened.sealed_step = seal.window_step
            if seal.runtime != self._parts.runtime:
                opened.resumed_from_runtime = seal.runtime
                _LOG.info(
                    "window %s resumed from step %d, sealed by another host (%s)",
                    seal.window,
                    seal.window_step,
                    seal.runtime,
                )
            opened.series.restore(seal.window_step, window_rows(seal))
        # This does not resume an attempt that was begun from a different model.
        resumed = opened.counters.value("resumed_from_step")
        opened.counters.add("resumed_from_step", opened.window_step - resumed)
