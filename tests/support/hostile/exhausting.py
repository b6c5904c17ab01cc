"""Data within all limits, which a process with little memory cannot decode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.rows.offset_runs import RECORDS, Run
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.kafka.wire.messages import Messages
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.datatasks.tasks import Chunk
from support.hostile.bombs import message
from support.hostile.readers import DAY, chunks_of, task_of

Read = Callable[[], dict[str, Any]]
_ROWS = 6_000_000
_TEXT = 11 << 20


def arrow(_folder: Path) -> Read:
    columns = {f"f{number}": ColumnType.FLOAT for number in range(20)}
    values = pa.array(np.zeros(_ROWS // 20))
    small = message({name: pa.array([1.0]) for name in columns})
    large = message(dict.fromkeys(columns, values), "zstd")
    return _messages("arrow-ipc", columns, [small, large, small])


def json_text(_folder: Path) -> Read:
    large = b'{"s": "' + b"a" * _TEXT + b'\\u00e4", "x": {}}'
    return _messages("json", {"s": ColumnType.STRING}, [b'{"s": "x"}', large, b'{"s": "y"}'])


def segment(folder: Path) -> Read:
    table = pa.table({"f": np.zeros(_ROWS)})
    if not (folder / "log").exists():
        path = LogWriter(folder / "log", 0).append(table, DAY.start)
        assert path is not None
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(path, table.schema, options=options) as file:
            file.write_table(table)
    (name,) = (path.relative_to(folder / "log").as_posix() for path in folder.glob("log/0/*.arrow"))
    return _file(folder, "log", {"path": "log"}, name, _ROWS)


def parquet(folder: Path) -> Read:
    table = pa.table({"f": np.zeros(_ROWS), "t": pa.array([DAY.start] * _ROWS)})
    (folder / "data").mkdir(exist_ok=True)
    path = folder / "data" / "a.parquet"
    pq.write_table(
        table,
        path,
        row_group_size=_ROWS,
        compression="zstd",
        data_page_size=1 << 30,
        max_rows_per_page=_ROWS,
        use_dictionary=False,
    )
    return _file(folder, "parquet", {"path": "data"}, "a.parquet", _ROWS)


READERS: Mapping[str, Callable[[Path], Read]] = {
    "arrow": arrow,
    "json": json_text,
    "segment": segment,
    "parquet": parquet,
}


def _messages(format_name: str, columns: dict[str, ColumnType], values: list[bytes]) -> Read:
    offsets = list(range(len(values)))
    run = Run(0, len(values), RECORDS)
    found = Messages(offsets, [0] * len(values), list(values), [run], 0)
    decoder = decoder_named(format_name, list(columns), columns)
    return lambda: _summed(chunks_of(decoder, [found], 0, 4096))


def _file(folder: Path, kind: str, options: dict[str, str], name: str, rows: int) -> Read:
    spec = SourceSpec.model_validate(
        {
            "name": "s",
            "kind": kind,
            "options": options,
            "columns": {"f": "float", "t": "timestamp"} if kind == "parquet" else {"f": "float"},
            "bad_rows": "dead_letter",
            **({"event_time": "t"} if kind == "parquet" else {}),
        }
    )
    source = open_source(spec, folder)
    return lambda: _summed(source.open(task_of(name, rows, rows), None, ["f"], 1 << 16))


def _summed(chunks: Iterable[Chunk]) -> dict[str, Any]:
    rows = dead_rows = 0
    dead = []
    for chunk in chunks:
        rows += chunk.batch.num_rows
        dead_rows += sum(row.rows for row in chunk.dead)
        dead += [(row.location, row.reason) for row in chunk.dead]
    return {"rows": rows, "dead_rows": dead_rows, "dead": dead}
