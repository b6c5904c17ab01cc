"""Types of option values that several kinds have."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from forebay.config.base import Duration, Spec

Text = Annotated[str, StringConstraints(min_length=1)]
Scalar = bool | int | float | str


class StreamOptions(Spec):
    """Options of kinds that cut a stream by offsets."""

    close_delay: Duration = Field(
        default=timedelta(minutes=1),
        description="How long after a window's end its last records may still arrive",
    )
    timestamp_jump_max: Duration = Field(
        default=timedelta(hours=1),
        description="How far ahead of the records around it a record's time may be",
    )
