"""CPU time of a step in microseconds a row, for what pipelines train, in docs/learning.md.

    python benchmarks/variant_costs.py

One thread, minibatches of 256 rows of a generated ad market, the best of seven rounds: other load
on the machine makes rounds slower, never faster.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from learning_page import with_block
from market_replay import prepared
from replay import ROWS, minibatches
from variants import PARADIGMS, train_of

from examples.demo.data.ad_market import MARKETS, generate
from forebay.config.checks.rivals import PREFERRED, RIVALS_MAX
from forebay.config.specs.datasets import Feed
from forebay.mixture.learner import Learner
from forebay.mixture.minibatch import Minibatch

PAGE = Path("docs/learning.md")
MARKERS = ("<!-- costs: begin -->", "<!-- costs: end -->")
FEEDS: tuple[Feed, Feed] = ("batch", "stream")
ROUNDS, MINIBATCHES = 7, 40
# The hour whose rows are learnt, and days of which it has both feeds.
HOUR, DAYS = 36, 2
HOURLY = 5_000
_SINGLE = [{"paradigm": name} for name in PARADIGMS if name != "mixture"]
_CORRECTED = [
    {"paradigm": name, "delay": "head"} for name in ("mixture", "batch_then_stream", "mixed")
]


class Trained(NamedTuple):
    """What one pipeline trains."""

    name: str
    variants: list[dict[str, str]]
    model: dict[str, Any]
    guard: bool = False


TRAINED = (
    Trained("`mixture`, mode `paper`", [{"paradigm": "mixture"}], {"mixture": {"mode": "paper"}}),
    Trained("`mixture`", [{"paradigm": "mixture"}], {}),
    Trained("`mixture` with its guard", [{"paradigm": "mixture"}], {}, guard=True),
    Trained(
        "the same and the rivals of `compare: auto`",
        [{"paradigm": "mixture"}, *(each._asdict() for each in PREFERRED[:RIVALS_MAX])],
        {},
        guard=True,
    ),
    Trained("`mixture+head`", _CORRECTED[:1], {}),
    Trained("`mixture+head` with its guard", _CORRECTED[:1], {}, guard=True),
    Trained("all five paradigms", [{"paradigm": "mixture"}, *_SINGLE], {}),
    Trained(
        "all five, three with the delay head (they share it), and the guard",
        [*_CORRECTED, {"paradigm": "batch"}, {"paradigm": "stream"}],
        {},
        guard=True,
    ),
)


def main() -> None:
    market = MARKETS["late conversions"]
    events = generate(market, 1, days=DAYS, hourly=HOURLY)
    learners: list[Learner] = []
    given: dict[Feed, list[Minibatch]] = {}
    for each in TRAINED:
        train = train_of(each.variants, guard=each.guard)
        learner, feeds = prepared(market, events, train, each.model)
        found = [one for _, one in minibatches(feeds, HOUR) if len(one) == ROWS]
        given = {feed: [one for one in found if one.feed == feed][:MINIBATCHES] for feed in FEEDS}
        learners.append(learner)
    best = [{feed: _cost(each, given[feed]) for feed in FEEDS} for each in learners]
    for _ in range(ROUNDS):
        for figures, learner in zip(best, learners, strict=True):
            for feed in FEEDS:
                figures[feed] = min(figures[feed], _cost(learner, given[feed]))
    lines = [
        f"Measured on {datetime.now(UTC):%Y-%m-%d}: `python benchmarks/variant_costs.py`.",
        "",
        "| trained | batch row | stream row |",
        "|---|---|---|",
    ]
    for each, figures in zip(TRAINED, best, strict=True):
        lines.append(f"| {each.name} | " + " | ".join(f"{figures[f]:.1f}" for f in FEEDS) + " |")
    text = "\n".join(lines)
    PAGE.write_text(with_block(PAGE, MARKERS, text))
    print(text)


def _cost(learner: Learner, given: list[Minibatch]) -> float:
    """CPU microseconds a row."""
    began = time.process_time()
    for minibatch in given:
        learner.learn(minibatch)
    return 1e6 * (time.process_time() - began) / (len(given) * ROWS)


if __name__ == "__main__":
    main()
