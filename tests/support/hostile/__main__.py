"""`python -m support.hostile KIND --seed S [--first N] [--count N] [--folder DIR]`: read faults.

One process, which may die of what it reads: the number of what it reads is in `DIR/reading`.
"""

from __future__ import annotations

import argparse
import json
import mmap
import random
import resource
import struct
import tempfile
import traceback
from pathlib import Path

from support.hostile.readers import READERS

# What a process has before it reads, and what the limits of one message and its copies may add.
MEMORY_BYTES = 3 << 30
RESIDENT_BYTES = 1 << 30
FAILURES_MAX = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=list(READERS))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    refused = 0
    failures: list[str] = []
    with (folder / "reading").open("w+b") as stream:
        stream.truncate(8)
        reading = mmap.mmap(stream.fileno(), 8)
        for number in range(given.first, given.first + given.count):
            struct.pack_into("<q", reading, 0, number)
            try:
                chance = random.Random(f"{given.kind}/{given.seed}/{number}")
                refused += bool(READERS[given.kind](chance, folder))
            except Exception:  # noqa: BLE001 - whatever it is, it is a failure with a number
                failures.append(f"number {number}: {traceback.format_exc()}")
                if len(failures) >= FAILURES_MAX:
                    break
    resident = _most_resident_bytes()
    if resident > RESIDENT_BYTES:
        failures.append(f"{resident >> 20} MB were resident, and {RESIDENT_BYTES >> 20} may be")
    print(json.dumps({"refused": refused, "resident": resident, "failures": failures}))


def _most_resident_bytes() -> int:
    """Of this program: what `getrusage` says may be of the process that started it."""
    status = Path("/proc/self/status").read_text()
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM:")]
    return int(line.split()[1]) << 10


if __name__ == "__main__":
    main()
