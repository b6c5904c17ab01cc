"""The check of a whole home: nothing to report if all is well, and each damage by its name."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Connection, Executable, Table, func, insert, select, update
from support.jobs import request, store_job
from support.links import judgement, link
from support.model_lines import export, keep_checkpoint, plan_empty, put
from support.stored_trees import make_tree
from support.task_tables import record_tasks

from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.executors.job.measures import Progress
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import take_lease
from forebay.executors.model_line.link import StoredSeal
from forebay.executors.stages.claims import Claims
from forebay.home import home_check
from forebay.home.database.open import close_databases, database_of
from forebay.home.database.tables import (
    STORED,
    jobs,
    link_files,
    link_rows,
    listings,
    manifests,
    seals,
)
from forebay.home.home_check import Fault, HomeCheck
from forebay.home.paths import Home
from forebay.home.store.open import store_of

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
SPANS = {
    FIRST: (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)),
    SECOND: (datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)),
}
NOW = datetime(2026, 3, 9, tzinfo=UTC)


@pytest.fixture
def whole(home: Home, tmp_path: Path) -> Home:
    """Two windows that were planned, requested, trained by a job, exported and published; a third
    that was not trained to its end."""
    ledger, chain = Ledger(home, "ads"), ModelChain(home, "ads")
    for key, span in SPANS.items():
        record_tasks(ledger, key, span, {"history": [(0, 5)], "clicks": [(1, 7)]})
    assert Claims(ledger, FIRST).decide("run#0", renewed=0) == 1
    job = request(home, "job-1", {FIRST: 1, SECOND: 1})
    store_job(job, "running")
    take_lease(job).release()
    one = link(FIRST, {"history": 5, "clicks": 7})
    chain.record(one)
    two = link(SECOND, {"history": 9}, {"history": 5, "clicks": 7}, parent=(FIRST, 1))
    chain.record(two.model_copy(update={"seen": two.seen | one.seen}))
    keep_checkpoint(chain, two)
    tree = store_of(home).put_tree("models", "scores", make_tree(tmp_path / "scores"))
    chain.add_file(two, "scores", tree)
    export(chain, two)
    assert not chain.publish(two, NOW)
    plan_empty(ledger, THIRD)
    facts = {"step": 9, "model_fingerprint": "same", "stored": put(home)}
    chain.record_seal(StoredSeal(window=THIRD, generation=1, **facts))
    source = ledger.plan(FIRST, 1).sources["clicks"]
    head = ListingHead(
        plan=source, declared="d", asked_by="run", listed_at=NOW, storage_calls=1, windows_scanned=1
    )
    listing = {"pipeline": "ads", "source": "clicks", "window": THIRD, "asked_by": "run"}
    listing |= {**put(home).model_dump(), "document": head.model_dump_json(), "stored_at": 1}
    progress = update(jobs).values(progress=Progress().model_dump_json())
    change(home, insert(listings).values(**listing), progress)
    chain.judge(two, judgement(two))
    return home


def change(home: Home, *statements: Executable) -> None:
    def work(rows: Connection) -> None:
        for statement in statements:
            rows.execute(statement)

    database_of(home).transact(work)


def names(home: Home, table: Table, of_row: ColumnElement[bool]) -> list[str]:
    rows = select(table.c.name).where(of_row)
    return database_of(home).read(lambda connection: list(connection.scalars(rows)))


def faults(home: Home) -> list[Fault]:
    return list(HomeCheck(home).faults())


def lines_of(home: Home) -> list[str]:
    return [str(fault) for fault in faults(home)]


def test_an_empty_home_is_whole(home: Home) -> None:
    assert faults(home) == []


def test_a_home_in_which_all_agrees_is_whole(whole: Home) -> None:
    looked = HomeCheck(whole)
    assert list(looked.faults()) == []
    expected = {"windows": 3, "links": 2, "seals": 1, "jobs": 1, "served": 1, "requests": 1}
    expected |= {"manifests": 4, "listings": 1, "link_files": 3}
    assert {name: looked.rows[name] for name in expected} == expected
    assert len(list(store_of(whole).names())) == 9
    assert looked.read_bytes == sum(
        database_of(whole).read(
            lambda rows, each=each: rows.scalar(func.sum(each.c.size_bytes)) or 0
        )
        for each in STORED
    )


@pytest.mark.parametrize("page", [1, 2, 3, 500])
def test_every_row_is_looked_at_whatever_a_page_holds(
    whole: Home, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_check, "_PAGE_ROWS", page)
    shutil.rmtree(whole.root / "store")
    assert len([fault for fault in faults(whole) if "is missing" in fault.problem]) == 10


@pytest.mark.parametrize("content", [None, b"other bytes"])
@pytest.mark.parametrize(
    ("table", "of_row", "said"),
    [
        (
            manifests,
            (manifests.c.plan_id == 1) & (manifests.c.stream == "clicks"),
            "pipeline ads, line main, window 2026-03-01, generation 1, stream clicks",
        ),
        (listings, listings.c.source == "clicks", "pipeline ads, window 2026-03-03, source clicks"),
        (
            link_files,
            link_files.c.kind == "checkpoint",
            "pipeline ads, line main, window 2026-03-02, generation 1, kind checkpoint",
        ),
        (
            link_files,
            link_files.c.kind == "scores",
            "pipeline ads, line main, window 2026-03-02, generation 1, kind scores",
        ),
        (seals, seals.c.step == 9, "pipeline ads, line main, window 2026-03-03, generation 1"),
    ],
)
def test_bytes_that_are_not_as_they_were_stored_are_named(
    whole: Home, table: Table, of_row: ColumnElement[bool], said: str, content: bytes | None
) -> None:
    (name,) = names(whole, table, of_row)
    place = whole.root / "store" / name
    if place.is_dir():
        place /= "content/variables/data-0"
    place.unlink()
    if content is not None:
        place.write_bytes(content)
    word = "missing" if content is None else "damaged: its checksum is not the one stored"
    way_out = "Restore it from a backup, or correct FOREBAY_STORE"
    assert lines_of(whole) == [f"{table.name}: {said}: {place} is {word}. {way_out}"]


@pytest.mark.parametrize("kind", ["checkpoint", "scores"])
def test_another_size_than_that_of_the_row_is_named(whole: Home, kind: str) -> None:
    change(
        whole,
        update(link_files).where(link_files.c.kind == kind).values(size_bytes=link_files.c.link_id),
    )
    (line,) = lines_of(whole)
    assert f"kind {kind}: " in line
    assert "bytes, but 2 are expected: the row that names it is damaged" in line


def test_bytes_that_two_generations_share_are_read_once_and_both_are_named(whole: Home) -> None:
    assert Claims(Ledger(whole, "ads"), SECOND).decide("run#1", renewed=1) == 2
    looked, before = HomeCheck(whole), HomeCheck(whole)
    assert list(looked.faults()) == []
    assert looked.rows["manifests"] == 6
    shared = names(whole, manifests, (manifests.c.plan_id == 2) & (manifests.c.stream == "clicks"))
    (whole.root / "store" / shared[0]).unlink()
    found = list(before.faults())
    assert [fault.subject["generation"] for fault in found] == [1, 2]
    assert before.read_bytes < looked.read_bytes


def test_what_is_dropped_meanwhile_is_no_fault(whole: Home) -> None:
    for name in names(whole, manifests, manifests.c.name != ""):
        (whole.root / "store" / name).unlink()
    found = HomeCheck(whole).faults()
    first = next(found)
    Ledger(whole, "ads").forget(SECOND)
    rest = [first, *found]
    assert {fault.subject["window"] for fault in rest} <= {first.subject["window"], FIRST}
    assert len(rest) < 4


@pytest.mark.parametrize("column", ["base_rows", "base_sum", "base_sum_of_squares"])
def test_a_model_that_begins_with_other_rows_than_the_one_before_saw_is_named(
    whole: Home, column: str
) -> None:
    change(whole, update(link_rows).where(link_rows.c.link_id == 2).values({column: 1}))
    found = faults(whole)
    problem = "starts from other rows than its parent model had seen"
    assert {fault.table for fault in found} == {"link_rows"}
    assert {fault.problem for fault in found} == {f"{problem}. Restore the database from a backup"}
    assert all(fault.subject["window"] == SECOND for fault in found)


@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
class TestSqlite:
    def test_a_row_without_its_parent_is_named(self, whole: Home) -> None:
        close_databases()
        with closing(sqlite3.connect(whole.root / "forebay.db")) as database, database:
            database.execute("DELETE FROM jobs")
        found = [line for line in lines_of(whole) if "refers to a row" in line]
        assert len(found) == 2
        assert "row 1 of job_windows refers to a row of jobs that does not exist" in found[0]

    def test_a_damaged_file_is_named(self, whole: Home) -> None:
        close_databases()
        swap = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'events'"
        words = ("event TEXT NOT NULL", "event TEXT")
        for one, other, more in ((*words, ""), (*words[::-1], "UPDATE events SET event = NULL")):
            with closing(sqlite3.connect(whole.root / "forebay.db")) as database, database:
                database.execute("PRAGMA writable_schema = ON")
                database.execute(more or "SELECT 1")
                assert database.execute(swap, (one, other)).rowcount == 1
        found = lines_of(whole)
        assert found
        assert all(line.startswith("database: NULL value in events.event") for line in found)
