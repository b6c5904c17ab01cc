"""The home of a command that writes to it: closed to other users first."""

from __future__ import annotations

import os

from forebay.commands.output import note
from forebay.home.paths import Home
from forebay.home.privacy import close_home


def closed_home(home: Home | None = None) -> Home:
    """The home that the environment names, or this one, closed to others; a note says so.

    One that is not there yet is made, closed, by whoever first writes to it.

    Raises:
        ConfigError: when it is open to others and belongs to somebody else.
    """
    home = home or Home.from_environment()
    if os.path.lexists(home.root) and (changed := close_home(home)):
        note(f"note: {changed}")
    return home
