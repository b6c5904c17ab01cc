"""What a trained window leaves in the store, before its link names it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from forebay.config.specs.windows import is_warm_start
from forebay.errors import DataError
from forebay.executors.model_line.link import FileKind, Link, StoredSeal
from forebay.executors.window_files.checkpoints import MODEL_FOLDER, Seal
from forebay.executors.window_files.dead_letters import DEAD_FOLDER, LetterFile, read_letters
from forebay.executors.window_files.scores import SCORES_FOLDER
from forebay.executors.window_files.steps import STEPS_NAME
from forebay.home.paths import DEFAULT_LINE
from forebay.home.store.base import MODELS, Store, Stored
from forebay.mixture.learner import Learner


@dataclass(frozen=True)
class WindowArchive:
    """Stores and loads what the links of one line name."""

    store: Store
    pipeline: str
    line: str

    def folder(self, window: str) -> str:
        return f"{MODELS}/{self.pipeline}/{self.line}/{window}"

    def put(self, window: str, generation: int, kind: FileKind, source: Path) -> Stored:
        """Store one file or folder; on return it is durable.

        Raises:
            InfrastructureError: when the store is full or cannot be reached.
        """
        folder = self.folder(window)
        stem = f"g{generation}-{kind}"
        if source.is_dir():
            return self.store.put_tree(folder, stem, source)
        return self.store.put(folder, stem, source.read_bytes())

    def put_window(
        self, local: Path, seal: Seal, checkpoint: Path, letters: LetterFile
    ) -> dict[FileKind, Stored]:
        """Store what the folder of a window holds at its end, except the exported model.

        Raises:
            DataError: when dead letters that were counted are missing.
            InfrastructureError: see `put`.
        """
        found: dict[FileKind, Path] = {"checkpoint": checkpoint, "steps": local / STEPS_NAME}
        scores = local / SCORES_FOLDER
        if scores.is_dir() and any(scores.iterdir()):
            found["scores"] = scores
        self.require_letters(seal, local)
        letters.end(seal.window, seal.generation)
        if any(read_letters(local / DEAD_FOLDER)):
            found["dead_letters"] = local / DEAD_FOLDER
        return {
            kind: self.put(seal.window, seal.generation, kind, path) for kind, path in found.items()
        }

    def load(self, learner: Learner, link: Link) -> None:
        """Bring a learner to where a link's window ended; the checkpoint must be kept.

        Raises:
            DataError: when it is not what was stored.
        """
        learner.load(self._tree(link.files["checkpoint"], link.window) / MODEL_FOLDER)

    def put_seal(self, window: str, generation: int, copy: Path) -> Stored:
        """Store what `copy_seal` gathered; on return it is durable.

        Raises:
            InfrastructureError: when the store is full or cannot be reached.
        """
        return self.store.put_tree(self.folder(window), f"g{generation}-seal", copy)

    def put_export(self, window: str, generation: int, step: int, folder: Path) -> Stored:
        """Store a model that was exported before its window had ended. Raises as `put`."""
        return self.store.put_tree(self.folder(window), f"g{generation}-step{step}", folder)

    def seal(self, seal: StoredSeal) -> Path:
        """What was stored of a seal, for `place_seal`.

        Raises:
            DataError: when it is not what was stored.
        """
        return self._tree(seal.stored, seal.window)

    def _tree(self, stored: Stored, window: str) -> Path:
        try:
            return self.store.tree(stored)
        except DataError as error:
            raise DataError(f"{error}; or {self._train_again(window)}") from error

    def require_letters(self, seal: Seal, local: Path) -> None:
        """Compare the letters in the folder of a window with what its seal counts.

        Raises:
            DataError: when some of a source are missing.
        """
        counted: Counter[str] = Counter()
        for task, progress in seal.progress.items():
            counted[task.rpartition("/")[0]] += progress.dead_rows
        missing = counted - Counter(seal.letters.left_out)
        for letter in read_letters(local / DEAD_FOLDER):
            missing[letter.source] -= letter.rows
        for source, rows in (+missing).items():
            raise DataError(
                f"window {seal.window}: {rows} of the {counted[source]} dead letters of {source} "
                f"are not on disk: {self._train_again(seal.window)}"
            )

    def _train_again(self, window: str) -> str:
        line = "" if self.line == DEFAULT_LINE else f" --line {self.line}"
        if is_warm_start(window):  # which --reprocess never covers
            return f"forget it and run again (`forebay forget {self.pipeline} {window}{line}`)"
        command = f"forebay run {self.pipeline}{line} --from {window} --to {window} --reprocess"
        return f"train window {window} again (`{command}`; in Airflow, clear its run)"
