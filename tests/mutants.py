"""Draws places from the pure rules by a seed, makes each of them wrong, and asks the tests.

    python tests/mutants.py --seed 7 --count 40

Nothing is written into the working tree: changed files go into copies of it.
`mutants_equivalent.txt` lists changes that change no behaviour, three lines for each: file and
change, the line that is changed, and why.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from support.mutation.modules import FOLDERS, Tree
from support.mutation.places import Change, places

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


_ROOT = Path(__file__).resolve().parents[1]
_REASONS = Path(__file__).with_name("mutants_equivalent.txt")


def main() -> None:
    """Print one line for each drawn place, and how many were caught."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--below", default="", help="only modules whose path starts so")
    parser.add_argument("--limit-seconds", type=float, default=240.0, help="for one place")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    tree = Tree(_ROOT)
    modules = [path for path in tree.rule_modules() if _name(path).startswith(given.below)]
    found = [(path, place) for path in modules for place in places(path.read_bytes())]
    count = min(given.count, len(found))
    print(f"seed {given.seed}: {count} of {len(found)} places in {len(modules)} modules")
    draw = random.Random(given.seed)
    drawn = [(path, draw.choice(place)) for path, place in draw.sample(found, count)]
    blocks = [block.splitlines() for block in _REASONS.read_text().strip().split("\n\n")]
    reasons = {(change, line): why for change, line, why in blocks}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        overlays: SimpleQueue[Overlay] = SimpleQueue()
        for number in range(given.workers):
            overlays.put(Overlay(_ROOT, Path(folder) / str(number)))

        def ask(item: tuple[Path, Change]) -> bool:
            path, change = item
            overlay, began = overlays.get(), time.monotonic()
            test = overlay.caught_by(path, change, tree.tests_of(path), given.limit_seconds)
            seconds = time.monotonic() - began
            overlays.put(overlay)
            name = f"{_name(path)}:{change.line} {change.what}"
            line = path.read_text().splitlines()[change.line - 1].strip()
            reason = reasons.get((f"{_name(path)} {change.what}", line), "")
            escaped = "ESCAPED" if seconds < given.limit_seconds else "OUT OF TIME"
            verdict = f"caught by {test}" if test else escaped
            verdict = f"equivalent: {reason}" if reason and not test else verdict
            print(f"{verdict} ({seconds:.1f} s): {name}", flush=True)
            return bool(test or reason)

        with ThreadPoolExecutor(given.workers) as pool:
            caught = sum(pool.map(ask, drawn))
    print(f"seed {given.seed}: {caught} of {count} caught")


def _name(path: Path) -> str:
    return path.relative_to(_ROOT).as_posix()


if __name__ == "__main__":
    main()
