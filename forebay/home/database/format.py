"""Opens the home that a process works in, or refuses one that another version wrote."""

from __future__ import annotations

from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.home.privacy import require_folder


def open_home() -> Home:
    """The home that the environment names.

    Raises:
        ConfigError: when another version wrote its state, or its database belongs to another home.
    """
    home = Home.from_environment()
    require_format(home)
    return home


def require_format(home: Home) -> None:
    """Refuse a home that this process must not use; one without state may be used.

    Raises:
        ConfigError: when it must not be used, saying what to do.
    """
    require_folder(home)
    database_of(home).check()


def record_format(home: Home) -> None:
    """Call before state is written: from now on the home belongs to this version.

    Raises:
        ConfigError: when another version wrote it.
    """
    database_of(home).prepare()
