"""The demo's second pipeline: what it declares, the data that it reads, and what it shows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest

from examples.demo.conversions import _RIVALS, story
from examples.demo.count import log_rows, parquet_rows
from examples.demo.data import market_data
from examples.demo.data.ad_market import HORIZON, features_of
from examples.demo.data.market_data import DAYS, MARKET, prepare_market
from examples.demo.settings import FIRST_HOUR, LAST_HOUR
from forebay.config.load import load_project
from forebay.config.specs.features import FeatureSpec
from forebay.datatasks.window_range import parse_range
from forebay.executors.evaluation.run_summary import Summary

PROJECT = load_project(Path("config"))
PIPELINE = PROJECT.pipeline("conversions")


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market")
    assert not prepare_market(folder)[1]
    return folder


def test_the_pipeline_declares_the_market_and_trains_every_rival_of_the_story() -> None:
    declared: dict[str, FeatureSpec] = PIPELINE.dataset.features
    assert {n: f.model_dump(exclude_defaults=True) for n, f in declared.items()} == {
        name: {key: value for key, value in spec.items() if (key, value) != ("dimension", 8)}
        for name, spec in features_of(MARKET).items()
    }
    assert [*PIPELINE.train.paradigms[1:]] == [*_RIVALS]


def test_its_windows_are_48_hours_and_half_of_them_are_judged_at_the_end() -> None:
    windows = parse_range(PIPELINE, FIRST_HOUR, LAST_HOUR)
    assert (len(windows), windows[0].start) == (48, PIPELINE.dataset.start)
    assert windows[-1].end == PIPELINE.dataset.end
    offset = PIPELINE.dataset.streams["history"].offset
    assert offset == HORIZON
    judged = [each for each in windows if each.start + offset < windows[-1].end]
    assert len(judged) == 24
    source = PROJECT.source("impressions")
    assert source.starts == PIPELINE.train.warm_start
    assert source.ends == source.starts + timedelta(days=DAYS)


def test_the_market_is_generated_once_with_complete_labels_and_a_log_of_all_rows(
    market: Path,
) -> None:
    built, reused = prepare_market(market)
    assert reused
    assert f"{built.events:,} impressions" in built.words
    assert "generated" in built.words
    assert 0.31 <= built.known_share <= 0.58
    files = f"{market}/impressions/*/*/*.parquet"
    query = f"""
        select count(*), count(distinct id), count(*) filter (converted is null),
          max(date_diff('second', "at", known_at)),
          count(*) filter (strftime("at" at time zone 'UTC', '%Y-%m-%d') <> date),
          count(*) filter (strftime("at" at time zone 'UTC', '%H') <> hour)
        from read_parquet('{files}', hive_partitioning=true, hive_types_autocast=false)"""
    ((rows, ids, unknown, longest, other_day, other_hour),) = duckdb.sql(query).fetchall()
    assert rows == ids == prepare_market(market)[0].events
    assert (unknown, other_day, other_hour, longest) == (0, 0, 0, HORIZON.total_seconds())
    history = parquet_rows(market / "impressions", time="at", label="converted")
    stream = log_rows(market / "live_impressions", label="converted")
    assert len(stream.ids) == len(history.ids)
    assert stream.labelled.all()
    assert (np.diff(stream.at) >= 0).all()
    lateness = np.sort(stream.at) - np.sort(history.at)
    hour, quarter = 3_600_000_000, 900_000_000
    assert hour - 1_000 <= lateness.min() <= lateness.max() <= hour + quarter


def test_another_revision_is_generated_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(market_data, "DAYS", 1)
    assert not prepare_market(tmp_path)[1]
    (tmp_path / "impressions" / "left").touch()
    monkeypatch.setattr(market_data, "REVISION", 99)
    assert not prepare_market(tmp_path)[1]
    assert not (tmp_path / "impressions" / "left").exists()
    assert prepare_market(tmp_path)[1]


def test_the_story_follows_what_was_measured() -> None:
    words = {
        ("mixture+head", "stream"): "mixture+head is better than stream (…)",
        ("mixture+head", "batch_then_stream+head"): "they do not differ (…)",
        ("stream", "batch"): "not told",
    }
    figures = {"value": 0, "low": 0, "high": 0, "differ": True}
    differences = [{"a": a, "b": b, "words": told} | figures for (a, b), told in words.items()]
    pooled = {"label_completeness": {"share": 0.512}, "differences": differences}
    rest = {"paradigms": ["mixture+head"], "windows": [], "rows_agree": True, "rows_line": ""}
    assert list(story(Summary.model_validate({**rest, "pooled": pooled}))) == [
        "51% of the purchases are known when the stream publishes them",
        "fresh labels alone: mixture+head is better than stream (…)",
        "one tower, corrected alike: they do not differ (…)",
    ]
    assert list(story(Summary.model_validate(rest))) == []
