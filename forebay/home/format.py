"""The format of what a home holds: names in stored files change, and nothing is converted.

The file `format` is written before the first state. A home of another format is refused with the
way out, before anything in it is read or written.
"""

from __future__ import annotations

from forebay.errors import ConfigError
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.files import write_atomically

FORMAT = "2"
FORMAT_NAME = "format"
# What an embedded Airflow or Kafka keeps in a home has nothing to do with it.
_STATE = ("ledger", "models", "jobs", "published")


def open_home() -> Home:
    """The home that the environment names.

    Raises:
        ConfigError: when its state is of another format.
    """
    home = Home.from_environment()
    require_format(home)
    return home


def require_format(home: Home) -> None:
    """Refuse a home whose state was written in another format; one without state may be used.

    Raises:
        ConfigError: with the way out.
    """
    if _found(home) == FORMAT:
        return
    state = [f"{name}/" for name in _STATE if _holds_something(home, name)]
    # Read once more: the process that wrote the first state has written the format before it.
    if not state or (found := _found(home)) == FORMAT:
        return
    written = f"in format {found}" if found else "without a format"
    raise ConfigError(
        f"{home.root} was written by another version of Forebay: it holds {', '.join(state)} "
        f"{written}, and this version reads format {FORMAT}. Move the folder away, or set "
        f"{ENVIRONMENT_NAME} to a new one, and train again"
    )


def record_format(home: Home) -> None:
    """Call before state is written: from now on the home has this version's format.

    Raises:
        ConfigError: when it has state of another one.
    """
    if _found(home) != FORMAT:
        require_format(home)
        write_atomically(home.root / FORMAT_NAME, f"{FORMAT}\n")


def _found(home: Home) -> str | None:
    try:
        return (home.root / FORMAT_NAME).read_text(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _holds_something(home: Home, name: str) -> bool:
    folder = home.root / name
    return folder.is_dir() and any(folder.iterdir())
