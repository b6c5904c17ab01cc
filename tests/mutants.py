"""Draws places from the pure rules by a seed, makes each of them wrong, and asks the tests.

    python tests/mutants.py --seed 7 --count 40

Nothing is written into the working tree: changed files go into copies of it.
`mutants_equivalent.txt` lists changes that change no behaviour, three lines for each: file and
change, the line that is changed, and why.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from support.mutation.modules import Tree
from support.mutation.places import Change, places
from support.mutation.runs import Overlay

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
