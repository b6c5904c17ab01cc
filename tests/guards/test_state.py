"""What is known is in the database and the store: files and locks are the runtime's alone."""

from __future__ import annotations

import re
from pathlib import Path

FILES = re.compile(
    r"\.(?:r?glob|iterdir)\(|\bos\.(?:scandir|listdir)\(|\bfcntl\b|\bFileLock\(|\.of_file\("
    r"|\b(?:read_json|append_lines|write_atomically|write_private)\("
)
FOLDERS = ("datatasks", "executors", "mixture", "operators")
# Rooms of what lives and ends with a job on its host, and of the data itself.
ROOMS = (
    "datatasks/sources",
    "executors/data_executor",
    "executors/driver",
    "executors/job",
    "executors/poison",
    "executors/serving",  # what model servers read
    "executors/supervisor",
    "executors/trainer",
    "executors/window_files",
    "executors/link",
)
# Modules that look after such folders, from outside of these rooms.
MODULES = (
    "executors/evaluation/pipeline_letters.py",  # dead letters of windows that are in training
    "executors/model_line/lease.py",  # the lock that says at once that a trainer on this host died
    "executors/model_line/start.py",  # looks for the identity in a stored checkpoint
    "executors/retention/job_folders.py",
    "executors/retention/home_garbage.py",
    "mixture/kernels/library.py",  # its own sources, which the machine code is made of
)


def test_nothing_else_reads_writes_lists_or_locks_files() -> None:
    found = [path for folder in FOLDERS for path in sorted(Path(folder).rglob("*.py"))]
    assert len(found) > 200
    with_files = {str(path) for path in found if FILES.search(path.read_text())}
    outside = {name for name in with_files if not name.startswith(tuple(f"{r}/" for r in ROOMS))}
    assert outside == set(MODULES)
