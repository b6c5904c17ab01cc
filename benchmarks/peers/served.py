"""What every peer does alike: wait for folders of Parquet files, read one, say what it took.

The parent writes a folder per line, the answer is one line of JSON: rows, and the seconds and CPU
seconds of this process and all below it, from the first minibatch on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import psutil

MINIBATCH_ROWS = 8192
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def answer(read: Callable[[list[Path]], Iterable[int]]) -> None:
    """Read each folder that is asked for; `read` yields the rows of each minibatch."""
    print("ready", file=sys.__stdout__, flush=True)
    for line in sys.stdin:
        result = measured(iter(read(sorted(Path(line.strip()).glob("*")))))
        print(json.dumps(result), file=sys.__stdout__, flush=True)


def measured(minibatches: Iterator[int]) -> dict[str, float]:
    """Rows after the first minibatch, and what they took; starting up is no part of it."""
    next(minibatches)
    before, started, rows = cpu_seconds(), time.perf_counter(), 0
    for count in minibatches:
        rows += count
    seconds = time.perf_counter() - started
    return {"rows": rows, "seconds": seconds, "cpu_seconds": cpu_seconds() - before}


def cpu_seconds() -> float:
    """Of this process, all that live below it, and those that ended."""
    here = psutil.Process()
    own = here.cpu_times()
    total = own.user + own.system + own.children_user + own.children_system
    for each in here.children(recursive=True):
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def hashed(values: np.ndarray, buckets: np.ndarray | int) -> np.ndarray:
    """Buckets of whole numbers by splitmix64: the fastest hash that NumPy has words for.

    Forebay hashes the number's text, as TensorFlow does; this is less work.
    """
    mixed = values.astype(np.uint64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX[0]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX[1]
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.asarray(buckets, np.uint64)).astype(np.int32)
