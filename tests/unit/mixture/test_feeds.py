"""Which paradigm learns from what."""

from __future__ import annotations

import pytest

from forebay.config.models import Paradigm
from forebay.mixture.feeds import takes


@pytest.mark.parametrize(
    ("paradigm", "warm", "window"),
    [
        ("batch", {"batch"}, {"batch"}),
        ("stream", {"stream"}, {"stream"}),
        ("batch_then_stream", {"batch"}, {"stream"}),
        ("mixed", {"batch", "stream"}, {"batch", "stream"}),
        ("mixture", {"batch", "stream"}, {"batch", "stream"}),
    ],
)
def test_feeds(paradigm: Paradigm, warm: set[str], window: set[str]) -> None:
    def taken(*, warm_start: bool) -> set[str]:
        feeds = ("batch", "stream")
        return {feed for feed in feeds if takes(paradigm, feed, warm_start=warm_start)}

    assert taken(warm_start=True) == warm
    assert taken(warm_start=False) == window
