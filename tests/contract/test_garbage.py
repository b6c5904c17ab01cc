"""Files that no row names are removed from the store, but not those about to be named."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from support.jobs import request, store_job
from support.links import link
from support.model_lines import export, keep_checkpoint, plan_empty, put
from support.task_tables import record_tasks
from support.there import there

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import FencedError, InfrastructureError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import take_lease
from forebay.executors.stages.claims import Claims
from forebay.home.database.open import database_of
from forebay.home.database.tables import tombstones
from forebay.home.paths import Home
from forebay.home.store import garbage
from forebay.home.store.base import WRITING_NAME
from forebay.home.store.folder_store import new_file_in, new_folder_in
from forebay.home.store.garbage import Garbage, collect, only_collector
from forebay.home.store.open import store_of
from forebay.system.files.durable import new_file

KEY = "2026-03-01"
SPAN = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


def buried(home: Home) -> int:
    count = select(func.count()).select_from(tombstones)
    return database_of(home).read(lambda rows: rows.scalar(count) or 0)


def stored(home: Home) -> set[str]:
    return set(store_of(home).names())


def test_what_a_window_s_life_names_stays(home: Home) -> None:
    assert collect(home) == collect(home, dry_run=True) == Garbage([], [])
    ledger, chain = Ledger(home, "ads"), ModelChain(home, "ads")
    record_tasks(ledger, KEY, SPAN, {"history": [(0, 5)], "clicks": [(1, 7)]})
    chain.record(link(KEY))
    recorded = there(chain.newest(KEY))
    keep_checkpoint(chain, recorded)
    export(chain, recorded)
    named = stored(home)
    assert len(named) == 4
    garbage_names = {put(home).name for _ in range(3)}
    assert set(collect(home, dry_run=True).names) == garbage_names
    assert (stored(home), buried(home)) == (named | garbage_names, 0)
    assert (set(collect(home).names), stored(home)) == (garbage_names, named)
    assert (collect(home).names, len(ledger.tasks(KEY, 1))) == ([], 2)


def test_a_name_that_two_generations_share_goes_with_the_last(home: Home) -> None:
    ledger = Ledger(home, "ads")
    record_tasks(ledger, KEY, SPAN, {"history": [(0, 5)]})
    assert (Claims(ledger, KEY).decide("r#0", renewed=1), collect(home).names) == (2, [])
    assert len(ledger.tasks(KEY, 2)) == 1
    ledger.forget(KEY)
    assert (len(collect(home).names), stored(home)) == (1, set())


def test_bytes_that_were_collected_before_their_row_are_refused(home: Home) -> None:
    ledger, chain = Ledger(home, "ads"), ModelChain(home, "ads")
    plan_empty(ledger, KEY)
    early = put(home)  # a trainer stores them, and is slow
    assert collect(home).names == [early.name]
    with pytest.raises(InfrastructureError, match=r"was removed .*\(forebay gc\): try again"):
        chain.record(link(KEY, files={"checkpoint": early}))
    assert chain.windows() == []
    chain.record(link(KEY, files={"checkpoint": put(home)}))
    assert collect(home).names == []


@pytest.mark.guarantee(
    "the process that collects garbage dies, at any point",
    "nothing that a link, a job or the serving model needs; what was marked and not removed is "
    "removed later",
)
def test_after_a_kill_between_tombstone_and_removal_it_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = put(home)
    with monkeypatch.context() as killed:
        killed.setattr(type(store_of(home)), "remove", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            collect(home)
    plan_empty(Ledger(home, "ads"), KEY)
    with pytest.raises(InfrastructureError, match="forebay gc"):
        ModelChain(home, "ads").record(link(KEY, files={"steps": early}))
    assert (stored(home), collect(home).names) == ({early.name}, [early.name])
    assert stored(home) == set()


def test_tombstones_do_not_pile_up(home: Home) -> None:
    put(home)
    collect(home)
    assert buried(home) == 1
    week = int((garbage.TOMBSTONE_SECONDS + 60) * 1e6)
    earlier = update(tombstones).values(buried_at=tombstones.c.buried_at - week)
    database_of(home).transact(lambda rows: rows.execute(earlier))
    put(home)
    collect(home)
    assert buried(home) == 1, "the older one is gone"


def killed_in_the_middle(home: Home, folder: str, source: Path) -> None:
    """A process of this kind dies while it stores a tree."""
    child = os.fork()
    if not child:
        store = store_of(home)
        os.rename = lambda *_: os._exit(9)  # type: ignore[assignment]
        Path.rename = lambda *_: os._exit(9)  # type: ignore[method-assign, assignment]
        os.link = lambda *_, **__: os._exit(9)  # type: ignore[assignment]
        store.put_tree(folder, "half", source)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    source = tmp_path / "tree"
    source.mkdir()
    (source / "file").write_bytes(b"x" * 10)
    return source


@pytest.mark.guarantee(
    "any process dies while it writes a file, a checkpoint or an exported model",
    "nothing; a living writer holds a lock on what is half written, and without such a lock it "
    "is removed",
)
def test_what_a_dead_writer_left_goes_once_it_is_sure_to_be_dead(home: Home, tree: Path) -> None:
    database_of(home).prepare()
    killed_in_the_middle(home, "models", tree)
    token = home.job("job-1") / ".token.0.unfinished"
    token.parent.mkdir(parents=True)
    token.touch()
    (in_store,) = [each.name for each in store_of(home).leftovers()]
    found = [in_store, "jobs/job-1/.token.0.unfinished"]
    if database_of(home).shared:
        assert collect(home).leftovers == [], "it may be at work on another host"
        yesterday = time.time() - timedelta(days=2).total_seconds()
        for path in [token, *home.store.rglob("*")]:
            os.utime(path, (yesterday, yesterday))
    assert (collect(home, dry_run=True).leftovers, collect(home).leftovers) == (found, found)
    assert list(store_of(home).leftovers()) == []
    assert not token.exists()


def test_what_a_living_writer_has_begun_stays(home: Home) -> None:
    database_of(home).prepare()
    name = "0" * 12 + "-x-" + "1" * 32
    with (
        new_file(home.job("job-1") / "token") as token,
        new_file_in(home.store / WRITING_NAME, name) as stored,
        new_folder_in(home.store / WRITING_NAME, f"{name}.tree") as (folder, _),
    ):
        assert collect(home).leftovers == []
        store_of(home).remove([f"{WRITING_NAME}/{name}", f"{WRITING_NAME}/{name}.tree"])
        assert folder.is_dir()
        assert [os.fstat(each.fileno()).st_nlink for each in (token, stored)] == [1, 1]


@pytest.mark.guarantee(
    "a trainer dies again and again while it stores a window",
    "nothing; what each one left is removed when the next one starts; read again: as for the "
    "trainer",
)
def test_what_dead_trainers_left_goes_when_the_next_one_starts(home: Home, tree: Path) -> None:
    for _ in range(7):
        killed_in_the_middle(home, "models/ads/main/2026-03-01", tree)
    killed_in_the_middle(home, "models/ads/other/2026-03-01", tree)
    assert len(list(store_of(home).leftovers())) == 8
    ModelChain(home, "ads").clear_store("models/ads/main/2026-03-01")
    left = list(store_of(home).leftovers())
    assert len(left) == 1, "that of another line, whose trainer may live"


def test_only_one_process_collects_at_a_time(home: Home) -> None:
    put(home)
    with (
        only_collector(home, 1.0),
        pytest.raises(InfrastructureError, match="only one process at a time"),
        only_collector(home, 0.05),
    ):
        pass
    with only_collector(home, 0.05):
        assert len(collect(home).names) == 1


def test_the_trainer_of_a_window_removes_what_dead_ones_stored_for_it(home: Home) -> None:
    chain = ModelChain(home, "ads")
    plan_empty(Ledger(home, "ads"), KEY)
    store = store_of(home)
    named, dead = (store.put("models/ads/main/1", "g1", b"1") for _ in range(2))
    other = store.put("models/ads/main/2", "g1", b"1")
    chain.record(link(KEY, files={"checkpoint": named}))
    chain.clear_store("models/ads/main/1")
    assert stored(home) == {named.name, other.name}
    with pytest.raises(InfrastructureError, match="forebay gc"):
        chain.add_file(link(KEY), "steps", dead)


def test_a_trainer_that_was_overtaken_removes_nothing(home: Home) -> None:
    assert store_job(request(home, "job-1", {KEY: 1}))
    take_lease(request(home, "job-1", {KEY: 1})).release()
    theirs = store_of(home).put("models/ads/main/1", "g1", b"2")
    with pytest.raises(FencedError):
        ModelChain(home, "ads", lease_epoch=0).clear_store("models/ads/main/1")
    assert stored(home) == {theirs.name}
