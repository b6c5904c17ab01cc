"""Lines whose trained windows a label join looks into: segments lie in folders of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from forebay.config.specs.datasets import Feed
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import order_of
from forebay.executors.label_join import join as joining
from forebay.executors.label_join.join import LabelJoin, LabelJoins
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import NO_TIME
from forebay.home.store.base import Stored
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us
from support.declarations import COLUMNS
from support.links import link, window_of
from support.minibatches import labelled

SOURCES = {
    name: SourceSpec.model_validate(
        {"name": name, "kind": kind, "columns": COLUMNS, "event_time": "at"}
    )
    for name, kind in (("history", "parquet"), ("clicks", "log"))
}


def joining_pipeline(
    labels: dict[str, Any], window: str = "1h", offset: str = "24h", count: int = 1, **dataset: Any
) -> PipelineSpec:
    """History with an offset beside clicks, read by so many data executors."""
    streams = {
        "history": {"sources": ["history"], "offset": offset},
        "clicks": {"sources": ["clicks"]},
    }
    features = {"user": {"encode": "hash", "buckets": 10}}
    declared = {"window": window, "start": "2026-03-01", "event_id": "event", "streams": streams}
    return PipelineSpec.model_validate(
        {
            "name": "ads",
            "dataset": {**declared, "features": features, **labels, **dataset},
            "train": {"paradigm": "mixture", "delay": "head"},
            "job": {"roles": {"data": {"count": count}}},
        }
    )


def timed_rows(
    feed: Feed, ids: Sequence[int], labels: Sequence[float], times: Sequence[str]
) -> Minibatch:
    """Rows of events in March 2026: of day, hour and minute, or without a time."""
    at = [to_us(datetime.fromisoformat(f"2026-03-{each}Z")) if each else NO_TIME for each in times]
    sources = np.full(len(ids), feed == "stream", np.int32)
    return replace(labelled(feed, ids, labels), sources=sources, event_times=np.array(at))


class SegmentLine:
    """A line that stores nothing: each test says how the segments of a window are written."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.home = None
        self.links: list[Link] = []
        self.read: list[str] = []
        monkeypatch.setattr(joining, "store_of", lambda _home: self)

    def tree(self, stored: Stored) -> Path:
        self.read.append(stored.name)
        return self.root / stored.name

    def between(self, first: Any, last: Any) -> list[Link]:
        return [each for each in self.links if order_of(first) <= order_of(each) <= order_of(last)]

    def linked(self, window: str, folder: str = "", **more: Any) -> Link:
        stored = Stored(name=folder or window, checksum="", size_bytes=1)
        self.links.append(link(window, files={"scores": stored}, **more))
        return self.links[-1]


def begin(join: LabelJoin | LabelJoins, key: str, before: Link | None) -> Any:
    span = window_of(key)
    plan: Any = SimpleNamespace(window=key, start=span.start, end=span.end)
    join.begin(plan, before)
    return plan


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(np.array(one), np.array(other, np.float64))
