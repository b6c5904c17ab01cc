"""Listings: whole or absent, one for each window, kept apart from the ledger."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.stages import noon, stages, table
from support.there import there

from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.planning.operations import Listed, scan_shares, shares_of
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.listing_rows import listed_for
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import DataError
from forebay.home.paths import Home

NOW = datetime(2026, 4, 1, tzinfo=UTC)
KEY = "2026-03-01"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def listings(home: Home) -> Listings:
    return Listings(Ledger(home, "ads"))


@pytest.fixture
def answer(tmp_path: Path) -> Iterator[Listed]:
    with stages(tmp_path) as found:
        MEMORY["a"] = table([noon(0), noon(0) + timedelta(hours=3)])
        shares = shares_of(found.pipeline, found.sources, [found.window(0)])["a"]
        yield scan_shares(open_source(found.sources["a"], tmp_path), shares)[0][KEY]


def test_what_is_stored_is_read(listings: Listings, answer: Listed, home: Home) -> None:
    head = listings.store(
        KEY, answer, declared="d", asked_by="r#0", at=NOW, storage_calls=3, windows_scanned=2
    )
    found = there(listings.read("a", KEY))
    assert found.head == head == listings.head("a", KEY)
    assert (head.asked_by, head.listed_at) == ("r#0", NOW)
    assert (head.storage_calls, head.windows_scanned, found.listed.plan) == (3, 2, answer.plan)
    assert found.listed.tasks.equals(answer.tasks)
    assert listed_for(home, "ads", "a", KEY) == "r#0"
    assert Ledger(home, "ads").windows() == []
    empty = Listed(answer.plan, answer.tasks.slice(0, 0))
    listings.store(KEY, empty, declared="d", asked_by="r#1", at=NOW)
    assert there(listings.read("a", KEY)).listed.tasks.num_rows == 0


def test_damaged_tasks_are_named(listings: Listings, answer: Listed, home: Home) -> None:
    listings.store(KEY, answer, declared="d", asked_by="r#0", at=NOW)
    (path,) = (home.root / "store" / "listings" / "ads" / KEY).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=rf"{path} is damaged"):
        listings.read("a", KEY)


def test_nothing_is_there(listings: Listings) -> None:
    assert listings.read("a", KEY) is None
    assert listings.head("a", KEY) is None
    assert (listings.first_asked("a", KEY), listings.windows()) == ({}, {})
    listings.drop(KEY)


def test_a_pass_asks_first_once(listings: Listings) -> None:
    assert listings.ask("a", KEY, "r#0", NOW) == (NOW, True)
    later = NOW + timedelta(hours=1)
    assert listings.ask("a", KEY, "r#0", later) == (NOW, False)
    assert listings.ask("a", KEY, "r#1", later) == (later, True)
    assert listings.first_asked("a", KEY) == {"r#0": NOW, "r#1": later}
    assert listings.windows() == {KEY: set()}


def test_passes_of_long_ago_are_forgotten(listings: Listings) -> None:
    for number in range(100):
        listings.ask("a", KEY, f"r#{number}", NOW)
    assert list(listings.first_asked("a", KEY)) == [f"r#{number}" for number in range(92, 100)]


def test_drop(listings: Listings, answer: Listed) -> None:
    first = listings.store(KEY, answer, declared="d", asked_by="r#0", at=NOW)
    listings.ask("a", KEY, "r#0", NOW)
    listings.store("2026-03-02", answer, declared="d", asked_by="r#0", at=NOW)
    newer = listings.store(KEY, answer, declared="d", asked_by="r#1", at=NOW)
    listings.drop(KEY, {"a": first})
    assert listings.head("a", KEY) == newer, "a newer pass waits for it"
    listings.drop(KEY, {"a": newer})
    assert listings.windows() == {"2026-03-02": {"a"}}
    listings.drop("2026-03-02")
    assert listings.windows() == {}


def test_whoever_reads_rows_imports_no_arrow() -> None:
    module = "forebay.datatasks.plans.listing_rows"
    code = f"import sys, {module}; print({{'pyarrow', 'numpy'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_answer_that_comes_late_replaces_none_of_a_later_look(
    listings: Listings, answer: Listed
) -> None:
    """Its scan began before the other's, perhaps of a folder that was declared then."""
    newer = listings.store(
        KEY, answer, declared="now", asked_by="r#1", at=NOW + timedelta(seconds=1)
    )
    listings.store(KEY, answer, declared="then", asked_by="r#0", at=NOW)
    assert listings.head("a", KEY) == newer
