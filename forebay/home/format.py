"""The home that a process works in: opened, and refused when it is not one of this version."""

from __future__ import annotations

from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.privacy import require_folder


def open_home() -> Home:
    """The home that the environment names.

    Raises:
        ConfigError: when its state is of another version, or of another home than its database.
    """
    home = Home.from_environment()
    require_format(home)
    return home


def require_format(home: Home) -> None:
    """Refuse a home that this process must not use; one without state may be used.

    Raises:
        ConfigError: with the way out.
    """
    require_folder(home)
    database_of(home).check()


def record_format(home: Home) -> None:
    """Call before state is written: from now on the home is one of this version.

    Raises:
        ConfigError: when it is one of another version.
    """
    database_of(home).prepare()
