"""`PYTHONPATH=tests python -m support.line_sequences --seed S [--sequences N] [--shrink]`.

With `--sequences N`, those of the seeds S to S+N-1. Each fault is printed with its seed; `--shrink`
prints the fewest operations that lead to the same one.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Sequence

from support.line_sequences.counts import Seen
from support.line_sequences.machine import Life
from support.sequences.children import work_here
from support.sequences.judge import Fault


def played(seed: int, steps: Sequence[int]) -> tuple[Life, Fault | None]:
    sequence = Life(seed)
    try:
        sequence.play(steps)
    except Fault as fault:
        return sequence, fault
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise
    return sequence, None


def shrunk(seed: int, steps: Sequence[int], kind: str) -> list[int]:
    left, at = list(steps), 0
    while at < len(left):
        fewer = left[:at] + left[at + 1 :]
        _, fault = played(seed, fewer)
        if fault is not None and fault.kind == kind:
            left = fewer
        else:
            at += 1
    return left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--story", action="store_true", help="print all operations")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    work_here()
    seen, faults = Seen(), Counter[str]()
    for seed in range(given.seed, given.seed + given.sequences):
        steps = list(range(given.steps))
        sequence, fault = played(seed, steps)
        seen.add(sequence.seen)
        if fault is not None:
            faults[fault.kind] += 1
            if given.shrink:
                steps = shrunk(seed, steps[: sequence.number + 1], fault.kind)
                sequence, fault = played(seed, steps)
        if fault is not None or given.story:
            told = "\n  ".join(sequence.story) if given.shrink or given.story else ""
            print(f"seed {seed}, operation {sequence.number}: {fault}\n  {told}", file=sys.stderr)
    print(json.dumps({**seen.counts(), "faults": dict(faults)}, indent=1))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
