"""Types of option values that several kinds have."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from forebay.config.specs.base import Duration, Spec
from forebay.system.names import shown

Text = Annotated[str, StringConstraints(min_length=1)]
Scalar = bool | int | float | str

# The most of one message, where a declaration says nothing else.
MESSAGE_ROWS_MAX = 1_000_000
MESSAGE_BYTES_MAX = 64 << 20


def require_url(text: str) -> str:
    """The text itself, if it begins with a scheme: clients find out when they connect."""
    if not re.match(r"[A-Za-z][\w+.-]*:/", text):
        raise ValueError(f"{shown(text)} has no scheme: write it as http://host:9000, for example")
    return text


class StorageOptions(Spec):
    """Options of a file system; those of S3 have types, which fsspec would not check."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Scalar]

    key: Text | None = Field(default=None, description="S3: access key")
    secret: Text | None = Field(default=None, description="S3: secret key, as ${NAME}")
    token: Text | None = Field(default=None, description="S3: session token, as ${NAME}")
    endpoint_url: Annotated[Text, AfterValidator(require_url)] | None = Field(
        default=None, description="S3: address of another server"
    )
    anon: bool | None = Field(default=None, description="S3: whether to use no keys at all")
    use_ssl: bool | None = Field(default=None, description="S3: whether to use TLS")
    requester_pays: bool | None = Field(default=None, description="S3: whether the reader pays")


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
