"""The home of a command that writes to it: closed to other users first."""

from __future__ import annotations

from forebay.commands.output import note
from forebay.home.paths import Home
from forebay.home.privacy import close_home


def closed_home(home: Home | None = None) -> Home:
    """The home that the environment names, or this one, closed to others; a note says so.

    Raises:
        ConfigError: when it is open to others and belongs to somebody else.
    """
    home = home or Home.from_environment()
    changed = close_home(home)
    if changed:
        note(f"note: {changed}")
    return home
