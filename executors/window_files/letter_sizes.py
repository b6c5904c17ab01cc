"""How many bytes the dead letters of each source take, whoever writes them."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

_LOOKS = 64


class LetterSizes:
    """Sizes of the files below one folder, as this process last saw them, and what it added since.

    It looks again after it has added a small part of the bound itself: others may add as much.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is looked at yet. A file is named after a task: `source-number.jsonl`."""
        self._folder = folder
        self._seen: Counter[str] | None = None
        self._added: Counter[str] = Counter()
        self._lock = threading.Lock()

    def of(self, source: str, bytes_max: int) -> int:
        """Bytes of a source's letters; `bytes_max` decides how exact this has to be."""
        with self._lock:
            if self._seen is None or self._added[source] > bytes_max // _LOOKS:
                self._seen = self._look()
                self._added.clear()
            return self._seen[source] + self._added[source]

    def add(self, source: str, size: int) -> None:
        """This many bytes were written."""
        with self._lock:
            self._added[source] += size

    def _look(self) -> Counter[str]:
        found: Counter[str] = Counter()
        if self._folder.is_dir():
            with os.scandir(self._folder) as files:
                for each in files:
                    found[Path(each.name).stem.rpartition("-")[0]] += each.stat().st_size
        return found
