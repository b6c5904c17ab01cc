"""Writes the generated market where the sources of `conversions` read: hourly files and a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from examples.demo.data.ad_market import MARKETS, Times, generate
from examples.demo.data.build_once import build_once
from forebay.datatasks.sources.log.writer import LogWriter

MARKET = MARKETS["late conversions"]
SEED, DAYS = 1, 8
# Increased whenever this code would write something different.
REVISION = 1
_HOUR_US = 3_600_000_000
_LOG_US = _HOUR_US // 4  # a log segment contains what was published in a quarter of an hour


@dataclass(frozen=True)
class Generated:
    content: str
    events: int
    conversions: int
    known_share: float

    @property
    def words(self) -> str:
        known = f"{100 * self.known_share:.0f}%"
        return (
            f"a generated ad market, nothing in it is real: {self.events:,} impressions in {DAYS} "
            f"days, {self.conversions:,} of them end in a purchase; {known} of these are known "
            "when the stream publishes them an hour later"
        )


def prepare_market(folder: Path) -> tuple[Generated, bool]:
    """Generate the market below `folder`, or reuse it; and whether it was reused."""
    content = f"seed {SEED}, {DAYS} days, revision {REVISION}"
    return build_once(folder, content, Generated, lambda: _build(folder, content))


def _build(folder: Path, content: str) -> Generated:
    events = generate(MARKET, SEED, days=DAYS)
    _write_files(events.history(), events.at, folder / "impressions")
    stream = events.stream()
    published = np.asarray(stream["published"].cast(pa.int64()).to_numpy())
    _write_log(stream, published, folder / "live_impressions")
    return Generated(
        content, len(events.at), int(events.converted.sum()), round(events.share_known, 4)
    )


def _write_files(rows: pa.Table, at: Times, folder: Path) -> None:
    for first, part in _spans(rows, at, _HOUR_US):
        hour = datetime.fromtimestamp(at[first] / 1e6, UTC)
        target = folder / f"date={hour:%Y-%m-%d}" / f"hour={hour:%H}"
        target.mkdir(parents=True)
        pq.write_table(part, target / "part-0.parquet")


def _write_log(rows: pa.Table, published: Times, folder: Path) -> None:
    """One partition; each segment's timestamp is its last row's publication."""
    spans = _spans(rows, published, _LOG_US)
    LogWriter(folder, 0).append_all(
        (part, datetime.fromtimestamp(published[first + part.num_rows - 1] / 1e6, UTC))
        for first, part in spans
    )


def _spans(rows: pa.Table, times: Times, span_us: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows of each span of time in turn, with the number of the first row."""
    edges = np.flatnonzero(np.diff(times // span_us, prepend=-1, append=-1)).tolist()
    for first, last in pairwise(edges):
        yield first, rows.slice(first, last - first)
