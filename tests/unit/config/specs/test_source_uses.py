"""The names of a source in the streams that read it, and which rows would be read twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

from forebay.config.specs.datasets import Doubled, doubled_sources, is_use_name

DAY = timedelta(days=1)


@pytest.mark.parametrize("text", ["", "@", "a@", "@b", "a@b@c", "a b", "a@b c", "a@1"])
def test_other_texts_are_no_names(text: str) -> None:
    assert not is_use_name(text)


def test_rows_are_read_twice_by_one_offset_alone() -> None:
    streams = {"now": ["clicks"], "also": ["views", "clicks"], "yesterday": ["clicks"]}
    offsets = {"now": timedelta(0), "also": timedelta(0), "yesterday": DAY}
    assert list(doubled_sources(streams, offsets)) == [Doubled("clicks", "also", 1, "now")]
    # What is not known is not compared; one stream has one offset, whatever it is.
    assert list(doubled_sources(streams, {})) == []
    assert list(doubled_sources({"now": ["a", "a"]}, {})) == [Doubled("a", "now", 1, "now")]
