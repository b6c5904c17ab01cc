"""Builds the demo's stored data once; later runs reuse it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from examples.demo.data.build_once import build_once
from examples.demo.data.flights import Flights, read_flights, source_file
from examples.demo.data.stores import (
    FILE_ORIGINS,
    ICEBERG_ORIGINS,
    origins,
    write_iceberg,
    write_log,
    write_parquet,
)

# The demo's windows end in early June; the rest of the year would only cost time.
END = datetime(2013, 7, 1, tzinfo=UTC)
# Increased whenever this code would write something different from the same flights.
REVISION = 1


@dataclass(frozen=True)
class Built:
    """What is in the data folder: rows by source, and how many flights never arrived.

    dataset_*: the same figures for the whole data set, of which the demo stores a part.
    """

    content: str
    dataset_flights: int
    dataset_without_arrival: int
    flights: int
    without_arrival: int
    flights_table: int
    flights_files: int
    departures: int
    known_share: float

    @property
    def words(self) -> str:
        return (
            f"{self.flights:,} flights before {END:%Y-%m-%d} of {self.dataset_flights:,} in the "
            f"data set, {self.without_arrival:,} of {self.dataset_without_arrival:,} without "
            f"arrival; flights_table {self.flights_table:,}, flights_files "
            f"{self.flights_files:,}, departures {self.departures:,} rows; "
            f"{int(100 * self.known_share)}% of the late flights are known at publication"
        )


def prepare(folder: Path, wait: timedelta, *, with_log: bool) -> tuple[Built, bool]:
    """Build the data below `folder`, or reuse it; and whether it was reused.

    with_log: whether to write the stream here; false if it goes to Kafka.
    """
    source = source_file()
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    content = f"{digest}-r{REVISION}-{int(wait.total_seconds())}s-{int(with_log)}"
    return build_once(
        folder,
        content,
        Built,
        lambda: _build(read_flights(source), folder, wait, content, with_log=with_log),
    )


def stream_rows(wait: timedelta) -> pa.Table:
    return read_flights(source_file()).before(END).as_known(wait)


def _build(
    everything: Flights, folder: Path, wait: timedelta, content: str, *, with_log: bool
) -> Built:
    flights = everything.before(END)
    complete, published = flights.complete(), flights.as_known(wait)
    table, files = origins(complete, ICEBERG_ORIGINS), origins(complete, FILE_ORIGINS)
    write_iceberg(table, folder / "flights_table", "flights.flights_table")
    write_parquet(files, folder / "flights_files")
    if with_log:
        write_log(published, folder / "departures", wait)
    return Built(
        content=content,
        dataset_flights=len(everything.rows),
        dataset_without_arrival=int(everything.arrived_late.isna().sum()),
        flights=complete.num_rows,
        without_arrival=complete["late"].null_count,
        flights_table=table.num_rows,
        flights_files=files.num_rows,
        departures=published.num_rows,
        known_share=flights.share_known(wait),
    )
