"""Row sums recomputed from stored data alone: imports nothing of forebay.

The definition is that of docs/guarantees.md: splitmix64(fingerprint64(path) + row), wrapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb
import farmhash
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Sums = dict[str, int]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def row_ids(path: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    base = np.uint64(farmhash.fingerprint64(path))
    with np.errstate(over="ignore"):
        return splitmix64(base + rows.astype(np.uint64)).view(np.int64)


def sums(parts: Iterable[npt.NDArray[np.int64]]) -> Sums:
    ids = np.concatenate([np.empty(0, np.int64), *parts])
    with np.errstate(over="ignore"):
        return {
            "rows": len(ids),
            "sum": int(ids.sum()),
            "sum_of_squares": int((ids * ids).sum()),
        }


def parquet_sums(folder: Path, where: str = "true", files: str = "**/*.parquet") -> Sums:
    """Sums over rows of a Parquet folder; `where` is SQL over the stored columns."""
    table = duckdb.sql(
        f"select filename, file_row_number as row from read_parquet("
        f"'{folder}/{files}', filename = true, file_row_number = true, hive_partitioning = false) "
        f"where {where}"
    ).fetchnumpy()
    names = np.asarray(table["filename"], dtype=object)
    parts = []
    for name in np.unique(names.astype(str)):
        path = Path(name).relative_to(folder).as_posix()
        parts.append(row_ids(path, np.asarray(table["row"], dtype=np.int64)[names == name]))
    return sums(parts)


def log_sums(folder: Path, first_ms: int, end_ms: int, keep: str | None = None) -> Sums:
    """Sums over log rows committed in [first_ms, end_ms) whose column `keep` is not null."""
    parts = []
    for path in sorted(folder.glob("*/*.arrow")):
        base, _, commit = path.stem.split("-")
        if not first_ms <= int(commit) < end_ms:
            continue
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        ids = row_ids(path.parent.name, int(base) + np.arange(table.num_rows, dtype=np.int64))
        if keep is not None:
            ids = ids[table.column(keep).is_valid().to_numpy(zero_copy_only=False)]
        parts.append(ids)
    return sums(parts)


def added(*several: Mapping[str, int]) -> Sums:
    """Wrapping sum of sums."""

    def wrap(value: int) -> int:
        return (value + 2**63) % 2**64 - 2**63

    return {
        "rows": sum(one["rows"] for one in several),
        "sum": wrap(sum(one["sum"] for one in several)),
        "sum_of_squares": wrap(sum(one["sum_of_squares"] for one in several)),
    }
