"""One example: a project on disk, the objects that a refusal may name, and who else can read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.declarations import Value, write

Row = dict[str, Any]


@dataclass
class Case:
    """A project. Its source is `odd`, and its pipeline `p`.

    sort: see `__main__`. what: in words. fault: what is wrong; empty for what has to be read.
    objects: texts of which a refusal names at least one. read: the rows of declared columns by an
    independent reader; None where nobody else is asked. by_time: whether the rows' own times say
    what is read of them.
    """

    root: Path
    sort: str
    what: str
    fault: str = ""
    objects: list[str] = field(default_factory=list)
    read: Callable[[Mapping[str, str]], list[Row]] | None = None
    by_time: bool = False

    @property
    def config(self) -> Path:
        return self.root / "config"


def declare(case: Case, kind: str, options: Value, columns: dict[str, str], **more: Any) -> None:
    source = {"kind": kind, "options": options, "columns": columns, "event_time": "at", **more}
    feature = {"encode": "hash", "column": "id", "buckets": 8}
    pipeline = {
        "dataset": {
            "window": "1d",
            "start": "2026-03-01",
            "event_id": "id",
            "label": {"column": "y"},
            "streams": {"s": {"sources": ["odd"]}},
            "features": {"f": feature},
        },
        "train": {
            "paradigm": "batch" if kind in {"parquet", "iceberg"} else "stream",
            "accept": ["no_positives"],
        },
    }
    write(case.config, {"sources/odd.yaml": source, "pipelines/p.yaml": pipeline})
