"""Draws places from the pure rules by a seed, makes each of them wrong, and asks the tests.

    python tests/mutants.py --seed 7 --count 40

Nothing is written into the working tree: changed files go into copies of it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from support.mutation.modules import Tree
from support.mutation.places import Change, places
from support.mutation.runs import Overlay, Verdict

_ROOT = Path(__file__).resolve().parents[1]
_REASONS = Path(__file__).with_name("mutants_equivalent.txt")


def main() -> int:
    """Print one line for each drawn place, and how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--below", default="", help="only modules whose path starts so")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for one place")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    tree = Tree(_ROOT)
    modules = [path for path in tree.rule_modules() if _name(path).startswith(given.below)]
    found = [(path, place) for path in modules for place in places(path.read_bytes())]
    print(f"seed {given.seed}: {given.count} of {len(found)} places in {len(modules)} modules")
    draw = random.Random(given.seed)
    drawn = [
        (path, draw.choice(place))
        for path, place in draw.sample(found, min(given.count, len(found)))
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        overlays: SimpleQueue[Overlay] = SimpleQueue()
        for number in range(given.workers):
            overlays.put(Overlay(_ROOT, Path(folder) / str(number)))

        def ask(item: tuple[Path, Change]) -> bool:
            path, change = item
            overlay = overlays.get()
            try:
                verdict = overlay.verdict(path, change, tree.tests_of(path), given.limit)
            finally:
                overlays.put(overlay)
            return _report(path, change, verdict)

        with ThreadPoolExecutor(given.workers) as pool:
            caught = sum(pool.map(ask, drawn))
    print(f"seed {given.seed}: {caught} of {len(drawn)} caught")
    return 0


def _report(path: Path, change: Change, verdict: Verdict) -> bool:
    name = f"{_name(path)}:{change.line} {change.what}"
    reason = _reasons().get(f"{_name(path)} {change.what}")
    if verdict.caught_by:
        line = f"caught by {verdict.caught_by} ({verdict.seconds:.1f} s): {name}"
    elif reason is not None:
        line = f"equivalent ({reason}): {name}"
    else:
        line = f"ESCAPED {name} ({verdict.seconds:.1f} s) {verdict.note}"
    print(line, flush=True)
    return bool(verdict.caught_by) or reason is not None


def _reasons() -> dict[str, str]:
    """Changes that change no behaviour: `path old -> new # why`, one on each line."""
    found = {}
    if _REASONS.exists():
        for line in _REASONS.read_text().splitlines():
            change, _, why = line.partition("  # ")
            found[change] = why
    return found


def _name(path: Path) -> str:
    return path.relative_to(_ROOT).as_posix()


if __name__ == "__main__":
    sys.exit(main())
