"""A store that homes could share belongs to one home: no other stores or removes anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.links import link
from support.model_lines import keep_checkpoint, put
from support.task_tables import record_tasks
from support.there import there

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import ConfigError
from forebay.executors.model_line.chain import ModelChain
from forebay.home.backup import back_up
from forebay.home.database.identity import read_marker
from forebay.home.database.open import close_databases, database_of
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from forebay.home.store.garbage import collect
from forebay.home.store.open import own_store, store_of

KEY = "2026-03-01"
SPAN = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


@pytest.fixture(params=["folder", "bucket"])
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Home]:
    """A home with a plan and a checkpoint in a store outside its folder."""
    monkeypatch.delenv("FOREBAY_DATABASE", raising=False)
    address = str(tmp_path / "shared")
    if request.param == "bucket":
        new_s3_address: Callable[[], str] = request.getfixturevalue("new_s3_address")
        address = new_s3_address()
    monkeypatch.setenv("FOREBAY_STORE", address)
    home = Home(tmp_path / "home")
    train(home)
    yield home
    close_databases()


def train(home: Home) -> None:
    record_tasks(Ledger(home, "ads"), KEY, SPAN, {"history": [(0, 5)]})
    chain = ModelChain(home, "ads")
    chain.record(link(KEY))
    keep_checkpoint(chain, link(KEY))


def require_whole(home: Home) -> None:
    assert list(HomeCheck(home).faults()) == []


def test_a_misspelled_home_removes_nothing(home: Home, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"typo is not a home yet, .* correct FOREBAY_HOME"):
        collect(Home(tmp_path / "typo"))
    require_whole(home)


@pytest.mark.guarantee(
    "the path of a home is misspelled, or a second home uses the same store",
    "nothing; it is refused",
)
def test_another_home_neither_stores_nor_removes(home: Home, tmp_path: Path) -> None:
    other, before = Home(tmp_path / "other"), set(store_of(home).names())
    database_of(other).prepare()
    theirs = f"names the store of home {there(read_marker(home)).id}, .* remove .*/\\.home$"
    with pytest.raises(ConfigError, match=theirs):
        record_tasks(Ledger(other, "ads"), KEY, SPAN, {"history": [(0, 5)]})
    with pytest.raises(ConfigError, match=theirs):
        ModelChain(other, "ads").clear_store(f"plans/ads/{KEY}")
    with pytest.raises(ConfigError, match=theirs):
        collect(other)
    assert set(store_of(home).names()) == before
    require_whole(home)


def test_a_store_below_another_one_is_left_alone(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as s3://bucket/forebay and s3://bucket/forebay/test."""
    above = os.environ["FOREBAY_STORE"]
    place, mark, options = above.partition("?")
    monkeypatch.setenv("FOREBAY_STORE", f"{place}/test{mark}{options}")
    below = Home(tmp_path / "below")
    train(below)
    monkeypatch.setenv("FOREBAY_STORE", above)
    assert (len(list(store_of(home).names())), collect(home).names) == (4, [])
    monkeypatch.setenv("FOREBAY_STORE", f"{place}/test{mark}{options}")
    require_whole(below)


def test_a_copy_with_its_own_store_leaves_the_home_s_alone(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Home(tmp_path / "copy")
    done = back_up(home, copy.root)
    put(home)  # a trainer of the home stores it, and is about to name it
    before = set(store_of(home).names())
    if done.store_copied:  # FOREBAY_STORE was left as it is
        with pytest.raises(ConfigError, match="each home removes what it does not name"):
            collect(copy)
        assert set(store_of(home).names()) == before
        monkeypatch.delenv("FOREBAY_STORE")
        require_whole(copy)
        assert collect(copy).names == []
    else:  # it takes the place of the home
        require_whole(copy)
        assert own_store(copy) is not None
