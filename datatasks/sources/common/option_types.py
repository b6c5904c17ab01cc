"""Types of option values that several kinds have."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from forebay.config.base import Duration, Spec

Text = Annotated[str, StringConstraints(min_length=1)]
Scalar = bool | int | float | str

# The most of one message, where a declaration says nothing else.
MESSAGE_ROWS_MAX = 1_000_000
MESSAGE_BYTES_MAX = 64 << 20


class StreamOptions(Spec):
    """Options of kinds that cut a stream by offsets."""

    close_delay: Duration = Field(
        default=timedelta(minutes=1),
        description="How long after a window's end its last records may still arrive",
    )
    timestamp_jump_max: Duration = Field(
        default=timedelta(hours=1),
        description="How far a record's time may be ahead of the records around it, or of the "
        "planner's clock. A record further ahead moves no window's border, and is counted in "
        "odd_timestamps",
    )
