"""Replays a generated market in windows: W learns its stream, and history of W - horizon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
from replay import ROWS, Feeds, Replayed, Span, Window, encoded, replay

from examples.demo.data.ad_market import HORIZON, START, Events, Market, features_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.make_learner import make_learner

HOUR_US = 3_600_000_000
START_US = int(START.timestamp() * 1e6)
HISTORY_HOURS = HORIZON // timedelta(hours=1)
THREADS = 1
DAYS = 12
# After five days of warm start the sixth lets all variants settle: some change feeds then.
SPAN = Span(windows=DAYS * 24, warm=5 * 24, judged_from=6 * 24, unread=HISTORY_HOURS)


def pipeline_of(
    market: Market, train: dict[str, Any], model: dict[str, Any], window_hours: int = 1
) -> PipelineSpec:
    """The pipeline that a user would declare for this market."""
    return PipelineSpec.model_validate(
        {
            "name": "conversions",
            "dataset": {
                "window": f"{window_hours}h" if window_hours < 24 else "1d",
                "start": START.isoformat(),
                "event_id": "id",
                "label": {"column": "converted"},
                "streams": {
                    "history": {
                        "sources": ["impressions"],
                        "offset": f"{market.horizon // timedelta(hours=1)}h",
                        "feed": "batch",
                    },
                    "live": {"sources": ["live_impressions"], "feed": "stream"},
                },
                "features": features_of(market),
            },
            "model": model,
            "train": {"minibatch_rows": ROWS, **train},
        }
    )


def replay_market(
    market: Market,
    events: Events,
    train: dict[str, Any],
    model: dict[str, Any],
    *,
    span: Span = SPAN,
    window_hours: int = 1,
    after_window: Callable[[Window], None] | None = None,
) -> Replayed:
    """Train all variants on a market's events, score the judged events."""
    learner, feeds = prepared(market, events, train, model, window_hours)
    return replay(learner, feeds, span, after_window)


def prepared(
    market: Market,
    events: Events,
    train: dict[str, Any],
    model: dict[str, Any],
    window_hours: int = 1,
) -> tuple[Learner, Feeds]:
    """What learns and what it is given."""
    pipeline = pipeline_of(market, train, model, window_hours)
    source = _source()
    layout = FeatureLayout.of(pipeline.dataset, source.columns)
    learner = make_learner(pipeline, source.columns, 2, THREADS)
    window_us = window_hours * HOUR_US
    later = market.horizon // timedelta(hours=window_hours)
    encoder = Encoder(pipeline.dataset, source, layout)
    return learner, _feeds(events, encoder, layout, window_us, later)


def _source() -> SourceSpec:
    whole = ("id", "user", "item", "category", "segment", "position", "device", "converted")
    columns = {"at": ColumnType.TIMESTAMP, **dict.fromkeys(whole, ColumnType.INT)}
    return SourceSpec(name="impressions", kind="memory", columns=columns)


def _feeds(
    events: Events, encoder: Encoder, layout: FeatureLayout, window_us: int, history_later: int
) -> Feeds:
    rows = np.flatnonzero(events.streamed)
    rows = rows[np.argsort(events.published[rows], kind="stable")]
    waits = ((events.published - events.at) / 1e6).astype(np.float32)
    # What a join of both copies of an event finds: whether the stream said what is true now.
    agrees = (events.known == events.converted).astype(np.float32)
    history = replace(
        encoded(events.history(), encoder, "batch", layout),
        event_times=events.at,
        waits=np.where(events.streamed, waits, np.nan).astype(np.float32),
        known=np.where(events.streamed, agrees, np.nan).astype(np.float32),
    )
    windows = (events.at - START_US) // window_us
    return Feeds(
        history=history,
        history_windows=windows + history_later,
        stream=replace(
            encoded(events.stream(), encoder, "stream", layout),
            event_times=events.at[rows],
            waits=waits[rows],
        ),
        stream_windows=(events.published[rows] - START_US) // window_us,
        events=history,
        event_windows=windows,
        converted=events.converted,
    )
