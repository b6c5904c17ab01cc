"""The database of a home: what every kind of it promises, and what only one kind does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, make_url, select, text, update
from sqlalchemy.engine.default import DefaultDialect
from support.postgres_server import PostgresServer
from support.there import there

from forebay.errors import ConfigError, InfrastructureError
from forebay.home.database import tables
from forebay.home.database.base import PATIENCE
from forebay.home.database.identity import Marker
from forebay.home.database.open import close_databases, database_of
from forebay.home.paths import Home
from forebay.system.liveness import Activity


def add(connection: Connection, key: str = "w", pipeline: str = "ads") -> None:
    values = {"pipeline": pipeline, "key": key, "starts_at": 0, "ends_at": 1, "last_generation": 0}
    values |= {"last_segments": ""}
    connection.execute(insert(tables.windows).values(**values))


def count(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(tables.windows)) or 0


def increase(connection: Connection) -> None:
    found = connection.scalar(select(tables.windows.c.last_generation)) or 0
    time.sleep(0.001)  # long enough for another to come in between, if it could
    connection.execute(update(tables.windows).values(last_generation=found + 1))


def increase_often(root: str, times: int) -> None:
    for _ in range(times):
        database_of(Home(Path(root))).transact(increase)


def increase_in_processes(home: Home, count: int, times: int) -> None:
    start = multiprocessing.get_context("spawn")
    arguments = (str(home.root), times)
    writers = [start.Process(target=increase_often, args=arguments) for _ in range(count)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


class TestEveryDatabase:
    def test_a_home_without_a_database_is_empty_and_stays_so(self, home: Home) -> None:
        database = database_of(home)
        assert database.read(count) == 0
        database.check()
        assert database.shared or not home.root.exists()

    def test_what_fails_leaves_nothing(self, home: Home) -> None:
        database = database_of(home)
        database.transact(lambda connection: add(connection, "first"))

        def fails(connection: Connection) -> None:
            add(connection, "second")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            database.transact(fails)
        assert database.read(count) == 1

    def test_a_read_sees_one_moment(self, home: Home) -> None:
        database = database_of(home)
        database.transact(add)

        def twice(connection: Connection) -> tuple[int, int]:
            first = count(connection)
            other = threading.Thread(
                target=database.transact, args=(lambda c: add(c, f"during {first}"),)
            )
            other.start()
            other.join(10)
            assert not other.is_alive(), "a reader holds nobody up"
            return first, count(connection)

        assert database.read(twice) == (1, 1)
        assert database.read(count) == 2

    def test_no_update_of_several_processes_is_lost(self, home: Home) -> None:
        database_of(home).transact(add)
        increase_in_processes(home, 2, times=40)
        last = select(tables.windows.c.last_generation)
        assert database_of(home).read(lambda connection: connection.scalar(last)) == 80

    def test_a_forked_child_opens_its_own(self, home: Home) -> None:
        database_of(home).transact(add)
        child = os.fork()
        if not child:
            seen = database_of(home).read(count)
            database_of(home).transact(lambda connection: add(connection, "child"))
            os._exit(0 if seen == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert database_of(home).read(count) == 2

    def test_several_make_one_home(self, home: Home) -> None:
        increase_in_processes(home, 3, times=1)
        assert marker(home).database == database_of(home).kind

    def test_a_name_is_held_by_one(self, home: Home) -> None:
        exclusive = database_of(home).exclusive
        locked = pytest.raises(InfrastructureError, match=r"has been locked for 0\.1 s")
        with exclusive("source a", 1.0), exclusive("source b", 1.0), locked:
            exclusive("source a", 0.1).__enter__()
        with exclusive("source a", 0.1):
            pass

    def test_another_home_is_refused(self, home: Home) -> None:
        database_of(home).transact(add)
        other = marker(home).model_copy(update={"id": "other"})
        (home.root / "home.json").write_text(other.model_dump_json())
        close_databases()
        with pytest.raises(ConfigError, match=r"is home other, but the database is that of home"):
            database_of(home).transact(add)

    def test_a_folder_that_lost_its_marker_gets_it_back(self, home: Home) -> None:
        database_of(home).transact(add)
        before = marker(home)
        (home.root / "home.json").unlink()
        (home.root / "jobs" / "one").mkdir(parents=True)
        close_databases()
        assert database_of(home).read(count) == 1
        assert marker(home) == before

    @pytest.mark.parametrize("found", [f"{int(tables.FORMAT) + more}" for more in (-1, 1)])
    def test_tables_of_another_format_are_refused(self, home: Home, found: str) -> None:
        other = update(tables.version).values(version_num=found)
        database_of(home).transact(lambda connection: connection.execute(other))
        close_databases()
        said = rf"{home.root} has format {found} \(its database\), but .* {tables.FORMAT}: use the"
        with pytest.raises(ConfigError, match=said):
            database_of(home).read(count)

    def test_a_folder_that_lost_all_but_its_state_is_refused(self, home: Home) -> None:
        (home.root / "training" / "ads").mkdir(parents=True)
        with pytest.raises(ConfigError, match=r"home\.json and its database, but holds training:"):
            database_of(home).transact(add)


def marker(home: Home) -> Marker:
    return there(Marker.of_file(home.root / "home.json"))


@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
class TestSqlite:
    def test_a_folder_that_is_replaced_is_opened_anew(self, home: Home) -> None:
        database = database_of(home)
        database.transact(add)
        home.root.rename(home.root.with_name("kept"))
        assert database.read(count) == 0
        database.transact(lambda connection: add(connection, "other"))
        database.transact(lambda connection: add(connection, "more"))
        assert database_of(Home(home.root.with_name("kept"))).read(count) == 1

    @pytest.mark.parametrize("name", ["a?mode=ro", "50%41", "a#b", "with space", "\u00fc"])
    def test_a_path_may_have_any_characters(self, tmp_path: Path, name: str, home: Home) -> None:
        home = Home(tmp_path / name)
        database_of(home).transact(add)
        close_databases()
        assert database_of(home).read(count) == 1
        assert (home.root / "forebay.db").is_file()
        assert [path.name for path in tmp_path.iterdir()] == [name]

    @pytest.mark.parametrize("content", [None, b"", b"no database at all" * 99])
    def test_a_lost_or_damaged_file_is_named(self, home: Home, content: bytes | None) -> None:
        database_of(home).transact(add)
        close_databases()
        if content is None:
            for path in home.root.glob("forebay.db*"):
                path.unlink()
        else:
            (home.root / "forebay.db").write_bytes(content)
        told = r"forebay\.db" if content else "has lost its database"
        with pytest.raises(InfrastructureError, match=told):
            database_of(home).read(count)

    def test_whoever_dies_while_it_is_made_leaves_nothing_in_the_way(self, home: Home) -> None:
        home.root.mkdir()
        (home.root / "forebay.db").touch()
        assert database_of(home).read(count) == 0
        database_of(home).transact(add)
        assert database_of(home).read(count) == 1

    def test_a_writer_that_hangs_is_no_wait_for_ever(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("forebay.home.database.sqlite._WRITE_LOCK_SECONDS", 0.2)
        database = database_of(home)
        database.transact(add)

        def hangs(_: Connection) -> None:
            with pytest.raises(InfrastructureError, match=r"has been locked for 0\.2 s"):
                database.transact(add)

        database.transact(hangs)
        assert database.transact(count) == 1


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("home", ["postgresql"], indirect=True)
class TestPostgres:
    def test_a_process_without_the_address_starts_no_other_home(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        database_of(home).transact(add)
        monkeypatch.delenv("FOREBAY_DATABASE")
        for attempt in (database_of(home).check, database_of(home).prepare):
            with pytest.raises(ConfigError, match=r"postgresql, .* set FOREBAY_DATABASE"):
                attempt()

    def test_another_folder_joins_the_home(self, home: Home, tmp_path: Path) -> None:
        database_of(home).transact(add)
        other = Home(tmp_path / "another host")
        assert database_of(other).read(count) == 1
        assert marker(other) == marker(home)

    def test_it_stays_in_its_schema(self, home: Home) -> None:
        database_of(home).prepare()
        schemas = text(
            "SELECT DISTINCT schemaname FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        found = database_of(home).read(lambda connection: connection.scalars(schemas).all())
        assert found == ["forebay"]

    def test_work_whose_connection_is_cut_is_done_again(self, home: Home) -> None:
        database = database_of(home)
        database.prepare()
        calls: list[int] = []

        def cut(connection: Connection) -> None:
            calls.append(connection.scalar(text("SELECT pg_backend_pid()")) or 0)
            add(connection, f"w{len(calls)}")
            if len(calls) == 1:
                database.read(kill(calls[0]))
                time.sleep(0.1)

        database.transact(cut)
        assert len(calls) == 2
        assert database.read(count) == 1

    @pytest.mark.parametrize("arrives", [True, False])
    def test_what_became_of_a_commit_is_asked(
        self, home: Home, arrives: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        database = database_of(home)
        database.prepare()
        calls = []

        def work(connection: Connection) -> None:
            calls.append(1)
            add(connection, f"w{len(calls)}")
            if len(calls) == 1:
                lose_the_answer(arrives, monkeypatch)

        database.transact(work)
        assert len(calls) == (1 if arrives else 2)
        assert database.read(count) == 1

    def test_a_server_that_comes_back_is_waited_for(
        self, home: Home, postgres_server: PostgresServer
    ) -> None:
        database = database_of(home)
        database.transact(add)
        postgres_server.stop(signal.SIGKILL)
        threading.Timer(0.5, postgres_server.start).start()
        database.transact(lambda connection: add(connection, "after"))
        assert database.read(count) == 2

    def test_a_server_that_stays_away_is_named(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PATIENCE, "seconds", 0.3)
        address = "postgresql://me:hunter2@127.0.0.1:1/facts"
        monkeypatch.setenv("FOREBAY_DATABASE", address)
        with pytest.raises(InfrastructureError) as raised:
            database_of(home).transact(add)
        assert "'facts' on 127.0.0.1 cannot be reached" in str(raised.value)
        assert "hunter2" not in str(raised.value)

    def test_who_looks_again_soon_does_not_wait_for_a_server(
        self, home: Home, postgres_server: PostgresServer
    ) -> None:
        database = database_of(home)
        database.transact(add)
        postgres_server.stop(signal.SIGQUIT)
        with within(5), pytest.raises(InfrastructureError, match="cannot be reached"):
            database.read(count, patient=False)
        postgres_server.start()
        assert database.read(count, patient=False) == 1

    def test_nor_for_long_for_one_that_accepts_and_says_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:
            address = f"postgresql://me@127.0.0.1:{mute.getsockname()[1]}/facts"
            monkeypatch.setenv("FOREBAY_DATABASE", address)
            began = time.monotonic()
            with pytest.raises(InfrastructureError, match="timeout expired"):
                database_of(Home(tmp_path)).read(count, patient=False)
            assert 1 < time.monotonic() - began < 5

    def test_nor_for_one_that_keeps_connections_and_says_nothing(
        self, home: Home, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer_soon(monkeypatch)
        database = database_of(home)
        database.transact(add)
        away = pytest.raises(InfrastructureError, match="cannot be reached")
        with postgres_server.suspended(), within(5), away:
            database.read(count, patient=False)
        assert database.read(count) == 1

    @pytest.mark.guarantee(
        "PostgreSQL keeps its connections open but does not answer",
        "nothing; it counts as away after 75 s, and is asked what became of a COMMIT",
    )
    @pytest.mark.parametrize("at", ["statement", "commit"])
    def test_what_is_never_answered_is_cut_off_and_done_once(
        self, home: Home, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, at: str
    ) -> None:
        answer_soon(monkeypatch)
        database = database_of(home)
        database.prepare()
        calls: list[int] = []

        def sleep() -> None:
            postgres_server.suspend()
            threading.Timer(2.0, postgres_server.resume).start()

        def work(connection: Connection) -> None:
            calls.append(1)
            if len(calls) == 1 and at == "statement":
                sleep()
            add(connection, f"w{len(calls)}")
            if len(calls) == 1 and at == "commit":
                at_commit(lambda commit, _: (sleep(), commit()), monkeypatch)

        with Activity("storing") as storing:
            database.transact(work)
        assert len(calls) == (2 if at == "statement" else 1)
        assert database.read(count) == 1
        assert storing.marks > 0

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ("sslmod=require", 'invalid connection option "sslmod"'),
            ("sslmode=sometimes", 'invalid sslmode value: "sometimes"'),
            ("service=nope", 'definition of service "nope" not found'),
        ],
    )
    def test_what_no_wait_cures_is_refused_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, said: str
    ) -> None:
        address = f"postgresql://me:hunter2@127.0.0.1:1/facts?{options}"
        monkeypatch.setenv("FOREBAY_DATABASE", address)
        with within(2), pytest.raises(InfrastructureError) as raised:
            database_of(Home(tmp_path)).read(count)
        assert said in str(raised.value)
        assert "correct FOREBAY_DATABASE" in str(raised.value)
        assert "hunter2" not in str(raised.value)

    def test_so_is_a_database_that_the_server_does_not_have(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = make_url(os.environ["FOREBAY_DATABASE"]).set(database="nowhere")
        address = place.render_as_string(hide_password=False)
        monkeypatch.setenv("FOREBAY_DATABASE", address)
        with within(2), pytest.raises(InfrastructureError, match="FATAL"):
            database_of(home).read(count)

    @pytest.mark.parametrize(
        "address",
        ["mysql://h/d", "facts.db", "postgresql://h:port/d", "postgresql://me:pass@word@h/d"],
    )
    def test_what_is_no_address_is_refused_unseen(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        monkeypatch.setenv("FOREBAY_DATABASE", address)
        with pytest.raises(ConfigError, match="FOREBAY_DATABASE") as raised:
            database_of(Home(tmp_path))
        assert address not in str(raised.value)
        assert "word@" not in str(raised.value)


def kill(pid: int) -> Callable[[Connection], object]:
    return lambda connection: connection.scalar(text(f"SELECT pg_terminate_backend({pid})"))


def answer_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that looks may just have begun to sleep for a second."""
    monkeypatch.setattr("forebay.home.database.postgresql.ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("forebay.home.database.postgresql.LOOK_SECONDS", 0.05)


def at_commit(
    act: Callable[[Callable[[], None], Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, in place of the next COMMIT: `act` is given what sends it, and the connection."""
    commit = DefaultDialect.do_commit

    def replaced(dialect: DefaultDialect, raw: Any) -> None:
        monkeypatch.setattr(DefaultDialect, "do_commit", commit)
        act(lambda: commit(dialect, raw), raw)

    monkeypatch.setattr(DefaultDialect, "do_commit", replaced)


def lose_the_answer(arrives: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next COMMIT reaches the server or does not; its connection is gone either way."""

    def lost(commit: Callable[[], None], raw: Any) -> None:
        if arrives:
            commit()
        raw.dbapi_connection.close()
        commit()

    at_commit(lost, monkeypatch)
