"""Tests on a copy of the tree in which one line is wrong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from support.mutation.modules import FOLDERS
from support.mutation.places import Change

_COPIED = (*FOLDERS, "forebay", "dags", "tests", "pyproject.toml", "README.md", "docs")
TEST_SECONDS = 60
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_NOTHING_FAILED = frozenset({0, 5})


@dataclass(frozen=True)
class Verdict:
    """The test that noticed a change, or what none of them noticed."""

    caught_by: str
    seconds: float
    note: str = ""


class Overlay:
    """A copy of the tree that one changed file after the other is written into."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self.folder = folder
        for name in _COPIED:
            source = root / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, folder / name, symlinks=True, ignore=ignored)
            elif source.exists():
                shutil.copy2(source, folder / name)
        # By content: a changed file of the same second and size is compiled anew.
        mode = ["--invalidation-mode", "checked-hash"]
        compiled = [sys.executable, "-m", "compileall", "-q", *mode, *FOLDERS, "forebay"]
        subprocess.run(compiled, cwd=folder, check=True)

    def verdict(
        self, module: Path, change: Change, groups: list[list[str]], limit: float
    ) -> Verdict:
        """Run the groups of tests one after the other until one fails."""
        path = self.folder / module.relative_to(self._root)
        original = path.read_bytes()
        began = time.monotonic()
        path.write_bytes(change.applied(original))
        try:
            for group in groups:
                left = limit - (time.monotonic() - began)
                if left <= 0:
                    return Verdict("", limit, "no more time")
                caught_by = self._first_failure(group, left)
                if caught_by:
                    return Verdict(caught_by, time.monotonic() - began)
        finally:
            path.write_bytes(original)
        return Verdict("", time.monotonic() - began)

    def _first_failure(self, tests: list[str], limit: float) -> str:
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header"]
        options += [f"--timeout={TEST_SECONDS}", "-m", "not kafka and not chaos"]
        options += ["--hypothesis-profile=mutants", "--durations=0", "--tb=no"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environment = os.environ | {"PYTHONPATH": str(self.folder)}
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                timeout=limit,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ""
        if done.returncode in _NOTHING_FAILED:
            return ""
        failed = _FAILED.search(done.stdout)
        return failed[1] if failed else f"{tests[0]} (exit {done.returncode})"
