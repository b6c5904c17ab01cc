"""The clock by which windows are over and slices end: the host's, or one that tests set.

FOREBAY_CLOCK is `INSTANT@SECONDSxRATE`: it was INSTANT when the host's clock was at SECONDS since
1970, and runs RATE times as fast. All processes of a home need the same. Heartbeats, leases and
what people read as the time of an event are by the host's clock.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta

from forebay.errors import ConfigError

CLOCK_NAME = "FOREBAY_CLOCK"
_SET = re.compile(r"(?P<instant>[^@]+)@(?P<seconds>\d+(\.\d+)?)x(?P<rate>\d+(\.\d+)?)")


def utc_now() -> datetime:
    """This moment.

    Raises:
        ConfigError: when FOREBAY_CLOCK is set to something else.
    """
    text = os.environ.get(CLOCK_NAME)
    if not text:
        return datetime.now(UTC)
    found = _SET.fullmatch(text)
    try:
        if found is None:
            raise ValueError("it is not INSTANT@SECONDSxRATE")
        instant = datetime.fromisoformat(found["instant"]).astimezone(UTC)
        return instant + timedelta(
            seconds=(time.time() - float(found["seconds"])) * float(found["rate"])
        )
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{CLOCK_NAME} is {text!r}: {error}; unset it") from error
