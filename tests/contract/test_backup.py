"""A copy of a home: complete whatever is removed meanwhile, independent, refused if half made."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.links import link
from support.model_lines import drop_checkpoints, export, keep_checkpoint, plan_empty, put
from support.postgres_server import PostgresServer
from support.stored_trees import make_tree, read_tree
from support.there import there

from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import InfrastructureError, UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import FileKind
from forebay.home import backup
from forebay.home.backup import back_up
from forebay.home.database.open import close_databases, database_of
from forebay.home.database.sqlite import SqliteDatabase
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from forebay.home.store.garbage import collect
from forebay.home.store.open import store_of

WINDOWS = ["2026-03-01", "2026-03-02", "2026-03-03"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """One trained window: a checkpoint, scores as a tree, and the model that serves."""
    for name in ("FOREBAY_DATABASE", "FOREBAY_STORE"):
        monkeypatch.delenv(name, raising=False)
    home = Home(tmp_path / "home")
    train(home, WINDOWS[0], make_tree(tmp_path / "scores"))
    yield home
    close_databases()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "monday"


def train(home: Home, window: str, scores: Path) -> None:
    """A window's link with its files; of checkpoints, only the newest window's is kept."""
    chain = ModelChain(home, "ads")
    plan_empty(Ledger(home, "ads"), window)
    before = chain.last()
    one = link(window, parent=(before[0].window, 1) if before else None)
    chain.record(one)
    trained = keep_checkpoint(chain, one)
    chain.add_file(trained, "scores", store_of(home).put_tree("models", "scores", scores))
    export(chain, trained)
    assert not chain.publish(trained, trained.finished_at)
    drop_checkpoints(chain, 1)


def checkpoints(home: Home) -> list[str]:
    links = ModelChain(home, "ads").links()
    return [each.window for each in links if "checkpoint" in each.files]


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def require_whole(home: Home) -> None:
    assert list(HomeCheck(home).faults()) == []


def test_the_copy_is_a_home_of_its_own(home: Home, target: Path, tmp_path: Path) -> None:
    unnamed, done = put(home), back_up(home, target)
    assert done == (3, [], True)
    copy = Home(target)
    assert sorted(path.name for path in target.iterdir()) == ["forebay.db", "home.json", "store"]
    require_whole(copy)
    assert set(store_of(copy).names()) == set(store_of(home).names()) - {unnamed.name}
    files = files_below(target / "store")
    assert {"plan.pb", "empty"} <= {path.name for path in files}
    linked = [path for path in files if path.name != "index.json"]
    assert all(path.samefile(home.root / path.relative_to(target)) for path in linked)
    train(copy, WINDOWS[1], make_tree(tmp_path / "more"))
    shutil.rmtree(home.root)
    close_databases()
    require_whole(copy)
    published = there(ModelChain(copy, "ads").published())
    assert published.window == WINDOWS[1]
    assert Path(published.path).is_relative_to(target)
    assert collect(copy).names == []


def test_what_cannot_be_linked_is_copied(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "link", Mock(side_effect=OSError(18, "Invalid cross-device link")))
        back_up(home, target)
    require_whole(Home(target))
    (home.root / "store" / ".writing").rmdir()
    assert read_tree(target / "store") == read_tree(home.root / "store")
    copied = files_below(target / "store")
    assert not any(path.samefile(home.root / path.relative_to(target)) for path in copied)


def train_while_copied(
    home: Home, windows: Iterator[str], trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each copy of the database a job links a window, and drops the checkpoint before it."""
    plain = SqliteDatabase.copy_to

    def copy_and_train(database: SqliteDatabase, path: Path) -> None:
        plain(database, path)
        for window in islice(windows, 1):
            train(home, window, make_tree(trees / window))
            collect(home)

    monkeypatch.setattr(SqliteDatabase, "copy_to", copy_and_train)


def test_what_is_dropped_while_it_is_copied_is_followed(
    home: Home, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_while_copied(home, iter(WINDOWS[1:]), tmp_path, monkeypatch)
    assert back_up(home, target).lost == []
    copy = Home(target)
    require_whole(copy)
    assert (ModelChain(copy, "ads").windows(), checkpoints(copy)) == (WINDOWS, WINDOWS[-1:])


def test_a_store_that_never_rests_is_no_copy_for_ever(
    home: Home, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "_ROUNDS_MAX", 3)
    days = (f"2026-03-{day:02}" for day in range(2, 9))
    train_while_copied(home, days, tmp_path, monkeypatch)
    with pytest.raises(InfrastructureError, match="changes faster than it can be copied"):
        back_up(home, target)
    require_refused(target)


def require_refused(target: Path) -> None:
    """Half a copy is neither a home, nor the place for another copy."""
    close_databases()
    with pytest.raises(InfrastructureError, match=f"{target} has lost its database"):
        database_of(Home(target)).check()


def test_a_copy_that_is_cut_off_is_no_home(home: Home, target: Path) -> None:
    close_databases()
    child = os.fork()
    if not child:
        backup.copy_name = lambda *_: os._exit(9)  # type: ignore[assignment]
        back_up(home, target)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    require_refused(target)
    with pytest.raises(UsageError, match="exists and is not empty"):
        back_up(home, target)


@pytest.mark.parametrize("damage", ["file", "tree"])
def test_what_is_lost_is_said_and_the_rest_copied(home: Home, target: Path, damage: str) -> None:
    kind: FileKind = "checkpoint" if damage == "file" else "scores"
    name = ModelChain(home, "ads").links()[0].files[kind].name
    place = home.root / "store" / name
    if damage == "file":
        place.unlink()
    else:
        (place / "index.json").write_text("{}")
    done = back_up(home, target)
    assert done.names == 3
    (problem,) = done.lost
    assert name in problem
    assert "Restore it from a backup" in problem
    (fault,) = HomeCheck(Home(target)).faults()
    assert fault.subject["kind"] == kind


@pytest.mark.parametrize("where", ["home", "home/jobs/new", "shared/new"])
def test_a_folder_inside_the_home_is_refused(
    home: Home, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBAY_STORE", str(tmp_path / "shared"))
    with pytest.raises(UsageError, match="name a "):
        back_up(home, tmp_path / where)
    assert not (home.root / "jobs").exists()
    assert not (tmp_path / "shared").exists()


def test_a_folder_that_is_used_is_refused(home: Home, target: Path) -> None:
    target.mkdir(parents=True)
    (target / "letter.txt").touch()
    with pytest.raises(UsageError, match=f"{target} exists and is not empty"):
        back_up(home, target)
    with pytest.raises(UsageError, match="exists and is not empty"):
        back_up(home, target / "letter.txt")
    (target / "letter.txt").unlink()
    assert back_up(home, target).names == 3


def test_what_is_no_home_is_refused(tmp_path: Path, target: Path) -> None:
    with pytest.raises(UsageError, match="is not a home yet: nothing to copy"):
        back_up(Home(tmp_path / "nothing"), target)
    assert not target.exists()


def test_facts_on_a_server_are_copied_by_its_own_program(
    tmp_path: Path, target: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    home = Home(tmp_path / "home")
    database_of(home).prepare()
    with pytest.raises(
        UsageError, match=r"`pg_dump --schema=forebay --dbname=DATABASE`, .*docs/internals/home\.md"
    ):
        back_up(home, target)
    close_databases()
    assert not target.exists()


def test_a_bucket_is_not_copied(
    home: Home, target: Path, new_s3_address: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREBAY_STORE", new_s3_address())
    chain = ModelChain(home, "ads")
    plan_empty(Ledger(home, "ads"), WINDOWS[1])
    chain.record(link(WINDOWS[1]))
    keep_checkpoint(chain, link(WINDOWS[1]))
    done = back_up(home, target)
    assert (done.names, done.store_copied) == (4, False)
    assert not (target / "store").exists()
    kept = ModelChain(Home(target), "ads").links()[1].files["checkpoint"]
    assert store_of(Home(target)).path(kept).read_bytes() == b"bytes"


def test_a_dump_of_a_server_is_a_home_again(
    tmp_path: Path,
    postgres_server: PostgresServer,
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As docs/internals/home.md says."""
    monkeypatch.delenv("FOREBAY_STORE", raising=False)
    monkeypatch.setenv("FOREBAY_DATABASE", address := new_database())
    home = Home(tmp_path / "home")
    train(home, WINDOWS[0], make_tree(tmp_path / "scores"))
    dump, restored = tmp_path / "forebay.dump", new_database()
    programs = postgres_server.programs / "bin"
    dumped = ["--schema=forebay", "--exclude-table-data=forebay.seals", "--format=custom"]
    to = [f"--file={dump}", f"--dbname={address}"]
    subprocess.run([programs / "pg_dump", *dumped, *to], check=True)
    subprocess.run([programs / "pg_restore", f"--dbname={restored}", dump], check=True)
    train(home, WINDOWS[1], make_tree(tmp_path / "more"))
    monkeypatch.setenv("FOREBAY_DATABASE", restored)
    copy = Home(Path(shutil.copytree(home.root, tmp_path / "copy")))
    assert ModelChain(copy, "ads").windows() == WINDOWS[:1]
    lost = [str(fault) for fault in HomeCheck(copy).faults()]
    assert len(lost) == 1, "the checkpoint that was dropped after the dump, before the copy"
    assert "kind checkpoint" in lost[0]
    close_databases()
