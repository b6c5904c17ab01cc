"""Which paradigm learns from which minibatches."""

from __future__ import annotations

from forebay.config.datasets import Feed
from forebay.config.models import Paradigm


def takes(paradigm: Paradigm, feed: Feed, *, warm_start: bool) -> bool:
    """Whether a paradigm learns from minibatches of this feed.

    `batch_then_stream` learns from batch rows while the warm start lasts and from stream rows
    in every window after it; without a warm start it equals `stream`.
    """
    if paradigm in ("mixed", "mixture"):
        return True
    if paradigm == "batch_then_stream":
        return feed == ("batch" if warm_start else "stream")
    return feed == paradigm
