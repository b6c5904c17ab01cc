"""Ray Data on this machine: Parquet, `map_batches`, `iter_batches`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import ray
from columns import encoded
from served import MINIBATCH_ROWS, answer


def main() -> None:
    ray.init(
        num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)

    def read(paths: list[Path]) -> Iterator[int]:
        rows = ray.data.read_parquet([str(path) for path in paths])
        made = rows.map_batches(
            prepared, batch_format="pyarrow", batch_size=MINIBATCH_ROWS, zero_copy_batch=True
        )
        for batch in made.iter_batches(batch_size=MINIBATCH_ROWS, batch_format="numpy"):
            yield len(batch["label"])

    answer(read)


def prepared(table: object) -> dict[str, object]:
    """Columns of one length each; the list as the hashes of its items, one row for each."""
    found = encoded(table)
    ends = found.pop("lengths").cumsum()
    flat = found.pop("history")
    found["history"] = [flat[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return found


if __name__ == "__main__":
    main()
