"""A SQLite database that is unavailable for a while, as if its disk were."""

from __future__ import annotations

from forebay.home.database.open import close_databases
from forebay.home.paths import Home


def take_away(home: Home) -> None:
    close_databases()
    (home.root / "forebay.db").rename(home.root / "away.db")


def bring_back(home: Home) -> None:
    (home.root / "away.db").rename(home.root / "forebay.db")
