"""Forebay's own reader: `python forebay_reader.py CONFIG LAST`; a folder is a window's rows.

One reading goes over all windows, as the others are started once too: it hands out the rows of the
next window each time, and those are the rows of the folder that is asked for.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from served import answer

from forebay.reading import read_windows


def main() -> None:
    config, last = sys.argv[1:]
    # Peers are ended by SIGTERM: leave `with`, and with it what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with read_windows(config, "criteo", first="2026-03-01", last=last) as rows:
        minibatches = rows.numpy()

        def read(paths: list[Path]) -> Iterator[int]:
            left = sum(pq.read_metadata(path).num_rows for path in paths)
            while left:
                rows_read = len(next(minibatches)["label"])
                assert paths[0].parent.name == f"date={rows.window}"
                left -= rows_read
                yield rows_read

        answer(read)


if __name__ == "__main__":
    main()
