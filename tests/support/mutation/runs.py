"""Tests on a copy of the tree in which one line is wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.mutation.modules import FOLDERS
from support.mutation.places import Change

_COPIED = (*FOLDERS, "forebay", "dags", "tests", "docs", "pyproject.toml", "README.md")
_OPTIONS = (
    *("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--durations=0"),
    *("--timeout=60", "-m", "not kafka and not chaos", "--hypothesis-profile=mutants"),
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
# No test failed: all passed, none was there, or somebody ended the tests from outside.
_NO_VERDICT = frozenset({0, 5, -signal.SIGTERM, -signal.SIGKILL})


class Overlay:
    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        for source in (root / name for name in _COPIED):
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / source.name, symlinks=True, ignore=ignored)
            else:
                shutil.copy2(source, folder)
        # By content: a changed file of the same second and size is compiled anew.
        command = ["compileall", "-q", "--invalidation-mode", "checked-hash", *FOLDERS, "forebay"]
        subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True)

    def caught_by(
        self, module: Path, change: Change, groups: list[list[str]], limit_seconds: float
    ) -> str:
        """Run one group of tests after the other; the first test that fails, or an empty text."""
        path = self._folder / module.relative_to(self._root)
        original = path.read_bytes()
        until = time.monotonic() + limit_seconds
        path.write_bytes(change.applied(original))
        try:
            failed = (self._first_failure(tests, until - time.monotonic()) for tests in groups)
            return next((test for test in failed if test), "")
        finally:
            path.write_bytes(original)

    def _first_failure(self, tests: list[str], seconds: float) -> str:
        if seconds <= 0:
            return ""
        command = [sys.executable, "-m", "pytest", *_OPTIONS, *tests]
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": str(self._folder)},
                timeout=seconds,
                text=True,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ""
        failed = _FAILED.search(done.stdout)
        if done.returncode in _NO_VERDICT:
            return ""
        return failed[1] if failed else f"{tests[0]} (exit {done.returncode})"
