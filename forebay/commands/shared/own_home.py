"""The home of a command that writes to it, which is first closed to other users."""

from __future__ import annotations

import os

from forebay.commands.shared.output import note
from forebay.home.paths import Home
from forebay.home.privacy import close_home


def closed_home(home: Home | None = None) -> Home:
    """The given home, or the one the environment names, closed to other users; a note says so.

    A home that does not exist yet is created, closed, by the first write to it.

    Raises:
        ConfigError: when it is open to other users and belongs to another user.
    """
    home = home or Home.from_environment()
    if os.path.lexists(home.root) and (changed := close_home(home)):
        note(f"note: {changed}")
    return home
