"""When batch rows are compared with the stream, and how far rows of one minibatch may be apart."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.stages import pipeline

from forebay.config.specs.feeds import hours_together, joined_labels

HEAD = {"paradigm": "mixture", "delay": "head"}


def made(window: str, offset: str, train: dict[str, Any], **more: Any) -> Any:
    streams = {"a": {"sources": ["a"], "offset": offset}, "b": {"sources": ["b"]}}
    dataset = {"window": window, "streams": streams}
    return pipeline(("a", "b"), dataset=dataset, train=train, **({"model": {}} | more))


@pytest.mark.parametrize(
    ("train", "joins"),
    [
        *(({"paradigm": "mixture"}, False), (HEAD, True)),
        ({"paradigm": "stream", "compare": [{"paradigm": "mixed", "delay": "fnw"}]}, True),
    ],
)
def test_labels_are_joined_where_a_variant_corrects_them(
    train: dict[str, Any], *, joins: bool
) -> None:
    assert bool(joined_labels(made("1d", "24h", train))) == joins
    assert not joined_labels(made("1d", "24h", train, model={"kind": "count"}))


@pytest.mark.parametrize(
    ("offset", "hours"), [("0s", 1), ("3h", 1), ("8h", 2), ("12h", 3), ("24h", 6), ("7d", 6)]
)
def test_the_later_batch_rows_come_the_more_hours_are_together(offset: str, hours: int) -> None:
    assert hours_together(made("1d", offset, HEAD)) == hours


def test_hours_are_not_looked_at_where_nothing_is_found_by_them() -> None:
    assert hours_together(made("1d", "24h", {"paradigm": "mixture"})) is None
    several = {"roles": {"data": {"count": 2}}}
    assert hours_together(made("1d", "24h", HEAD, job=several)) is None


def test_copies_are_looked_for_as_far_back_as_the_largest_offset() -> None:
    dataset = made("1d", "36h", HEAD).dataset
    assert dataset.joined_within == timedelta(hours=36)
    longer = dataset.model_copy(update={"label_join": timedelta(days=7)})
    assert longer.joined_within == timedelta(days=7)
