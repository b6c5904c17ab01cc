"""The demo's data: labels that come late, columns known before departure, an honest count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from examples.demo.data.flight_data import END, prepare
from examples.demo.data.flights import SCHEMA, Flights, read_flights, source_file
from examples.demo.data.stores import PARTITIONS, micro_batches
from forebay.config.load import load_project
from forebay.config.specs.features import feature_columns

WAIT = timedelta(hours=9)


@pytest.fixture(scope="module")
def flights() -> Flights:
    return read_flights(source_file())


def test_labels_agree_with_the_csv_file_and_are_never_taken_back(flights: Flights) -> None:
    raw = pd.read_csv(source_file(), usecols=["arr_delay"])
    late = flights.complete().to_pandas().set_index("id")["late"].sort_index()
    assert (late.isna() == raw["arr_delay"].isna()).all()
    assert (late.dropna() == (raw["arr_delay"].dropna() > 15)).all()
    """What is known early stays true: fresh labels only ever miss positives."""
    early = flights.as_known(timedelta(hours=3))["late"].to_pandas()
    late = flights.complete()["late"].to_pandas()
    known = early.notna()
    assert (known == late.notna()).all()
    assert (early[known] <= late[known]).all()
    complete = flights.complete()
    assert (complete.num_rows, complete["late"].null_count) == (336_776, 9_430)
    assert flights.as_known(WAIT)["late"].null_count == 9_430
    assert int(100 * flights.share_known(timedelta(hours=3))) == 31
    assert round(100 * flights.share_known(WAIT)) == 99
    positives = pa.compute.sum(flights.complete()["late"]).as_py()
    fresh = pa.compute.sum(flights.as_known(timedelta(hours=3))["late"]).as_py()
    assert fresh / positives == pytest.approx(flights.share_known(timedelta(hours=3)))


def test_only_what_is_known_before_departure_is_stored_and_read() -> None:
    assert SCHEMA.names == [
        *("id", "sched_dep", "carrier", "flight", "tailnum", "origin", "dest", "distance", "late")
    ]
    project = load_project(Path("config"))
    features = project.pipeline("flights").dataset.features
    read = {column for name, one in features.items() for column in feature_columns(name, one)}
    assert read == {"carrier", "tailnum", "flight", "origin", "dest", "sched_dep", "distance"}
    assert set(features) == {
        *("carrier", "tailnum", "flight", "origin", "dest", "hour", "weekday", "distance")
    }
    for name in project.pipeline("flights").source_names:
        source = project.source(name)
        assert list(source.columns) == SCHEMA.names
        assert source.label_null == "dead_letter"


def test_micro_batches_hold_each_row_once_inside_its_hour(flights: Flights) -> None:
    rows = flights.before(datetime(2013, 1, 8, tzinfo=UTC)).as_known(WAIT)
    sent = list(micro_batches(rows, WAIT))
    ids = np.concatenate([one.batch["id"].to_numpy() for one in sent])
    assert sorted(ids) == sorted(rows["id"].to_pylist())
    for partition in range(PARTITIONS):
        times = [one.sent_ms for one in sent if one.partition == partition]
        assert times == sorted(times)
    for one in sent:
        published = one.batch["sched_dep"].cast(pa.int64()).to_numpy() // 1000 + 9 * 3_600_000
        assert published.max() == one.sent_ms
        assert set(published // 3_600_000) == {one.sent_ms // 3_600_000}


def test_data_is_built_once_and_split_by_origin(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    built, reused = prepare(folder, WAIT, with_log=True)
    assert not reused
    again, reused = prepare(folder, WAIT, with_log=True)
    assert reused
    assert (again, built.dataset_flights, built.dataset_without_arrival) == (built, 336_776, 9_430)
    assert built.flights == built.flights_table + built.flights_files == built.departures
    tables = f"{folder}/flights_table/warehouse/**/*.parquet"
    files = f"{folder}/flights_files/*/*.parquet"
    for place, origins in ((tables, {("EWR",), ("JFK",)}), (files, {("LGA",)})):
        query = f"select distinct origin from read_parquet('{place}')"
        assert set(duckdb.sql(query).fetchall()) == origins
    query = f"select epoch(max(sched_dep)) from read_parquet('{tables}')"
    ((newest,),) = duckdb.sql(query).fetchall()
    assert newest < END.timestamp()
    (other, reused) = prepare(folder, timedelta(hours=3), with_log=False)
    assert not reused
    assert int(100 * other.known_share) == 31
    assert not (folder / "departures").exists()
