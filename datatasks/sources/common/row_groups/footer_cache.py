"""Footers that one process has read, for the next one: by path and state of the file."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.datatasks.sources.common.files.bundles import Ints
from forebay.datatasks.sources.common.files.listing import Files, Listing
from forebay.datatasks.sources.common.row_groups.planner import Footer

FILES_MAX = 500_000
_NUMBERS = ("rows", "size_bytes", "low", "high", "state")
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("digest", pa.string()),
        *((name, pa.list_(pa.int64())) for name in _NUMBERS),
    ]
)
_MEANING = "2"  # changes whenever a footer means something else
_LOG = logging.getLogger(__name__)


class FooterCache:
    """Footers of the files of one place.

    A file that is not as it was has another state, and its footer is read again. What cannot be
    read is not kept.

    read: the footer of each path, or the reason why it cannot be read. meaning: what else decides
    what is read, such as the column that cuts.
    """

    def __init__(
        self,
        cache: PlanCache,
        files: Files,
        read: Callable[[Sequence[str]], Sequence[Footer | str]],
        meaning: str,
    ) -> None:
        self._cache = cache
        self._files = files
        self._read = read
        of = hashlib.sha256(f"{files.identity}|{meaning}".encode()).hexdigest()
        self._name = f"footers/{of[:32]}.arrow"
        self._schema = _SCHEMA.with_metadata({"footers": _MEANING, "of": of})

    def footers(self, everything: Listing, chosen: Listing) -> list[Footer | str]:
        """The footer of each chosen file, or the reason why it cannot be read.

        everything: all files of the place; what is kept of others goes.

        Raises:
            DataError: when a file has no such event-time column.
            InfrastructureError: when the storage does not answer.
        """
        kept = self._kept()
        keys = _keys(chosen)
        at = np.asarray(pc.fill_null(pc.index_in(keys, kept["key"]), -1))
        missing = np.flatnonzero(at < 0)
        paths = chosen.take(missing).paths.to_pylist()
        self._files.calls += len(paths)
        found = dict(zip(missing.tolist(), self._read(paths), strict=True))
        known = _Columns(kept)
        footers = [
            found[index] if row < 0 else known.footer(row) for index, row in enumerate(at.tolist())
        ]
        self._keep(kept, everything, keys, found)
        return footers

    def _kept(self) -> pa.Table:
        content = self._cache.read(self._name)
        if content is None:
            return _SCHEMA.empty_table()
        try:
            table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
        except pa.ArrowException as error:
            _LOG.warning("cache/%s is not a table, footers are read again: %s", self._name, error)
            return _SCHEMA.empty_table()
        if not table.schema.equals(self._schema, check_metadata=True):
            _LOG.warning("cache/%s holds something else: footers are read again", self._name)
            return _SCHEMA.empty_table()
        return table.combine_chunks()

    def _keep(
        self, kept: pa.Table, everything: Listing, keys: pa.Array, found: Mapping[int, Footer | str]
    ) -> None:
        """Add what was read; drop what is gone or changed, and the oldest above the bound."""
        texts = keys.take(pa.array(list(found), pa.int64())).to_pylist()
        new = [
            (key, footer)
            for key, footer in zip(texts, found.values(), strict=True)
            if isinstance(footer, Footer) and key is not None
        ]
        if not new:
            return
        there = pc.is_in(kept["key"], _keys(everything).drop_null())
        table = pa.concat_tables([kept.filter(there), _table(new)])
        table = table.slice(max(0, table.num_rows - FILES_MAX)).combine_chunks()
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(sink, self._schema, options=options) as writer:
            writer.write_table(table.replace_schema_metadata(self._schema.metadata))
        self._cache.keep(self._name, memoryview(sink.getvalue()))


def _keys(listing: Listing) -> pa.Array:
    """Path and state of each file; null where nothing says that a file was not touched."""
    states = pc.if_else(pc.equal(listing.states, ""), None, listing.states)
    return pc.binary_join_element_wise(listing.paths, states, "\n")


def _table(footers: list[tuple[str, Footer]]) -> pa.Table:
    columns: dict[str, object] = {
        "key": [key for key, _ in footers],
        "digest": [footer.digest for _, footer in footers],
    }
    counts = [len(footer.rows) for _, footer in footers]
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    for name in _NUMBERS:
        values = np.concatenate([getattr(footer, name) for _, footer in footers])
        columns[name] = pa.ListArray.from_arrays(offsets, pa.array(values))
    return pa.table(columns, schema=_SCHEMA)


class _Columns:
    """The table as arrays, so that a footer is a few slices."""

    def __init__(self, table: pa.Table) -> None:
        self._digests: list[str] = table["digest"].to_pylist()
        lists = {name: pa.concat_arrays(table[name].chunks) for name in _NUMBERS if len(table)}
        self._values: dict[str, Ints] = {
            name: np.asarray(column.flatten()) for name, column in lists.items()
        }
        counts = [np.asarray(column.value_lengths()) for column in lists.values()][:1]
        self._ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))

    def footer(self, row: int) -> Footer:
        part = slice(int(self._ends[row]), int(self._ends[row + 1]))
        rows, size, low, high, state = (self._values[name][part] for name in _NUMBERS)
        return Footer(rows, size, low, high, state, self._digests[row])
