"""Memory and time of the join of labels: a year of hourly windows, 10 million events.

The join keeps events of the last `label_join` in sorted arrays. Measured for a day (what an offset
of 24 h means) and for the whole year: bytes of an event, what a further window costs, and what a
batch row costs that is looked up in a minibatch of 512. Run it: `python benchmarks/label_join.py`.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from forebay.executors.label_join.join import GrowingRows, PublishedRows

HOURS = 365 * 24
HOUR_US = 3_600_000_000
LOOKED_UP = 512


def window_rows(random: np.random.Generator, hour: int, rows: int) -> PublishedRows:
    ids = random.integers(-(2**63), 2**63 - 1, rows)
    fresh = (random.random(rows) < 0.1).astype(np.float32)
    waits = random.random(rows).astype(np.float32) * 3600
    marks = hour * HOUR_US + np.sort(random.integers(0, HOUR_US, rows))
    return PublishedRows.of(ids, fresh, waits, marks)


def kept(random: np.random.Generator, hours: int, rows: int) -> PublishedRows:
    """All events of so many hours, as windows one after another would leave them."""
    windows = [window_rows(random, hour, rows) for hour in range(hours)]
    while len(windows) > 1:  # as if merged one by one, in less time
        pairs = zip(windows[::2], windows[1::2], strict=False)
        odd = windows[-1:] if len(windows) % 2 else []
        windows = [first.followed_by(second) for first, second in pairs] + odd
    return windows[0]


def show(name: str, hours: int, rows: int, rounds: int) -> None:
    random = np.random.default_rng(7)
    everything = kept(random, hours, rows)
    size = sum(
        each.nbytes
        for each in (everything.ids, everything.fresh, everything.waits, everything.marks)
    )
    started = time.process_time()
    for number in range(rounds):
        later = window_rows(random, hours + number, rows)
        everything = everything.followed_by(later).since((number + 1) * HOUR_US)
    merged = (time.process_time() - started) / rounds
    asked = [random.choice(everything.ids, LOOKED_UP) for _ in range(200)]
    started = time.process_time()
    for ids in asked:
        everything.places(ids)
    looked_up = (time.process_time() - started) / (len(asked) * LOOKED_UP)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<22} {len(everything):>11,} events  {size / 2**20:7.1f} MiB "
        f"({size / len(everything):.0f} bytes each)  a window more {merged * 1e3:7.1f} ms  "
        f"a row looked up {looked_up * 1e6:.2f} us  peak of the process {peak:,.0f} MiB"
    )


def grow(rows: int) -> None:
    """Rows of one window, in minibatches, each followed by a minibatch that looks for others."""
    random = np.random.default_rng(8)
    growing, bound = GrowingRows(), np.full(LOOKED_UP, 24)
    added = looked_up = 0.0
    for _ in range(rows // LOOKED_UP):
        found = window_rows(random, 0, LOOKED_UP)
        started = time.process_time()
        growing.add(found)
        added += time.process_time() - started
        started = time.process_time()
        growing.find(found.ids, bound)
        looked_up += time.process_time() - started
    print(
        f"{'within a window':<22} {rows:>11,} events  a row added {added * 1e6 / rows:.2f} us  "
        f"a row looked up {looked_up * 1e6 / rows:.2f} us"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000, help="in a year")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    rows = options.events // HOURS
    show("label_join: 24h", 24, rows, options.rounds)
    grow(1_000_000)
    show("label_join: 365d", HOURS, rows, options.rounds)


if __name__ == "__main__":
    main()
