"""Calls between processes: retries, deadlines, refusals; the driver's answers to repeated calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.data_path import DataPath
from support.projects import DAY, FIRST_DAY, ads_pipeline, history_source, write_history
from support.strangers import until
from support.there import there

from forebay.datatasks.tasks import DataTask, Position, TaskProgress
from forebay.errors import ConfigError, DataError, FencedError, InfrastructureError, NotKnownError
from forebay.executors.driver.offset_commits import SealCommitter
from forebay.executors.link.local import LocalLink
from forebay.executors.wire import rpc as limits
from forebay.executors.wire.messages import (
    Done,
    LeaseCall,
    LeaseReply,
    Opened,
    OpenWindow,
    Orders,
    Progress,
    Registered,
    Registration,
    SealCall,
    StatusCall,
    TrainerBeat,
)
from forebay.executors.wire.rpc import DriverClient, RpcServer


def done(*_: object) -> Done:
    return Done()


def serve(folder: Path, handler: Any = done) -> RpcServer:
    link = LocalLink(folder, "driver")
    (folder / "endpoints").mkdir(exist_ok=True)
    server = RpcServer(link, {"status": (StatusCall, handler)}, 4)
    server.start()
    link.serve(server.address)
    return server


@contextmanager
def served(folder: Path, handler: Any = done) -> Iterator[None]:
    server = serve(folder, handler)
    try:
        yield
    finally:
        server.stop(0)


def test_a_call_finds_the_driver_again_after_a_restart(tmp_path: Path) -> None:
    started: list[RpcServer] = []
    with closing(DriverClient(LocalLink(tmp_path), 10.0)) as client:
        with served(tmp_path):
            assert client.call("status", StatusCall(), Done) == Done()
        threading.Timer(0.4, lambda: started.append(serve(tmp_path))).start()
        assert client.call("status", StatusCall(), Done) == Done()
    started[0].stop(0)


def test_a_call_goes_on_when_another_thread_closed_the_channel(tmp_path: Path) -> None:
    with served(tmp_path), closing(DriverClient(LocalLink(tmp_path), 10.0)) as client:
        assert client.call("status", StatusCall(), Done) == Done()
        # As by a call that failed after this one looked for the channel.
        there(client._connection).close()
        assert client.call("status", StatusCall(), Done) == Done()


def test_a_wait_that_another_thread_ended_uses_up_no_patience(tmp_path: Path) -> None:
    """A job was stopped for longer than calls are repeated: all of its processes go on."""
    calls, is_over = [], threading.Event()

    def answer(call: StatusCall, context: object) -> Done:
        calls.append(call)
        if len(calls) == 1:
            is_over.wait(20)
        return Done()

    with served(tmp_path, answer), closing(DriverClient(LocalLink(tmp_path), 0.5)) as client:
        threading.Timer(1.0, lambda: there(client._connection).close()).start()
        assert client.call("status", StatusCall(), Done, timeout=30.0) == Done()
        assert len(calls) == 2
        is_over.set()


def test_a_call_gives_up_when_its_patience_is_over(tmp_path: Path) -> None:
    client = DriverClient(LocalLink(tmp_path), 0.3)
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match="did not answer status"):
        client.call("status", StatusCall(), Done)
    assert time.monotonic() - started < 2
    with served(tmp_path, lambda *_: time.sleep(1) or Done()):
        with pytest.raises(InfrastructureError, match="DEADLINE_EXCEEDED"):
            client.call("status", StatusCall(), Done, timeout=0.1)
        client.close()
        with pytest.raises(InfrastructureError):
            client.call("status", StatusCall(), Done)


def test_refusals_arrive_in_their_class_and_are_not_repeated(tmp_path: Path) -> None:
    calls = []

    def refuse(call: StatusCall, context: Any) -> Done:
        calls.append(call)
        raise DataError("row 7 is bad " + "x" * 10_000)

    with served(tmp_path, refuse), closing(DriverClient(LocalLink(tmp_path), 5.0)) as client:
        with pytest.raises(DataError, match="row 7 is bad"):
            client.call("status", StatusCall(), Done)
        assert len(calls) == 1


def test_a_connection_that_was_closed_for_its_silence_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_IDLE_SECONDS", 1)
    with served(tmp_path), closing(DriverClient(LocalLink(tmp_path), 5.0)) as client:
        assert client.call("status", StatusCall(), Done) == Done()
        before = client._connection
        assert until(lambda: open_sockets() == 1, 10), "only the one that listens"
        assert client.call("status", StatusCall(), Done) == Done()
        assert client._connection is before, "nobody has noticed"


def open_sockets() -> int:
    """Sockets of this process below a job's folder."""
    connections = psutil.Process().net_connections("unix")
    return sum("driver-0." in str(each.laddr) for each in connections)


SMALL = [("grpc.max_receive_message_length", 1000), ("grpc.max_send_message_length", 1000)]


@pytest.mark.parametrize(
    ("limit", "small"), [("CLIENT_OPTIONS", SMALL), ("MESSAGE_BYTES_MAX", 1000)]
)
def test_a_message_that_is_too_large_is_refused_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, small: object
) -> None:
    large = OpenWindow(trainer=1, window="w" * 2000, generation=1, step=0, sealed={}, used={})
    monkeypatch.setattr(limits, limit, small)
    with (
        served(tmp_path),
        closing(DriverClient(LocalLink(tmp_path), 5.0)) as client,
        pytest.raises(InfrastructureError, match=r"refused status.*larger than max"),
    ):
        client.call("status", large, Done)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[tuple[DataPath, DriverClient]]:
    """A real driver process over one window of history."""
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, 2_000, files=3)
    pipeline = ads_pipeline()
    del pipeline["dataset"]["streams"]["clicks"]
    path = DataPath.of(tmp_path, pipeline, {"history": history_source()})
    path.plan("2026-03-01", "2026-03-01")
    path.start("driver")
    with closing(DriverClient(LocalLink(path.job_dir), 20.0)) as client:
        yield path, client
    path.stop()


def opened(client: DriverClient, trainer: int = 1, used: Progress | None = None) -> Opened:
    call = OpenWindow(
        trainer=trainer, window="2026-03-01", generation=1, step=0, sealed={}, used=used or {}
    )
    return client.call("open", call, Opened)


def lease(client: DriverClient, epoch: int, sequence: int, **more: Any) -> LeaseReply:
    call = LeaseCall(executor=0, instance="i", epoch=epoch, sequence=sequence, last=False, **more)
    return client.call("lease", call, LeaseReply)


def test_the_driver_answers_repeated_calls_alike(driver: tuple[DataPath, DriverClient]) -> None:
    path, client = driver
    registration = Registration(executor=0, instance="i", attempt=1, address="unix:data-0.0", pid=1)
    with pytest.raises(NotKnownError):
        lease(client, 0, 1)
    client.call("register", registration, Registered)
    assert lease(client, 0, 1, wait_seconds=0.1).grants == []
    window = opened(client)
    first = lease(client, 0, 2)
    assert first.epoch > 0
    assert first.grants
    assert lease(client, 0, 2) == first  # its answer was lost on the way
    assert lease(client, 0, 1) == first  # a call that was given up long ago gets nothing new
    assert path.status().tasks["reading"] == len(first.grants)

    beat = TrainerBeat(trainer=1, session=window.session, sequence=1, version=0)
    orders = client.call("beat", beat, Orders)
    assert [serving.epoch for serving in orders.serving] == [first.epoch]
    broken = beat.model_copy(update={"sequence": 2, "broken": [first.epoch]})
    assert client.call("beat", broken, Orders).fence == [first.epoch]
    task_id = first.grants[0].task.task_id
    taken = {task_id: TaskProgress(position=Position(0, 5), rows_read=5)}
    fenced = beat.model_copy(update={"sequence": 3, "fenced": {first.epoch: taken}})
    for _ in range(2):
        assert client.call("beat", fenced, Orders).fence == []
    # The executor gets another epoch, and the task goes on where the trainer stands.
    again = lease(client, first.epoch, 3)
    assert again.epoch > first.epoch
    positions = {grant.task.task_id: grant.progress for grant in again.grants}
    assert positions[task_id] == taken[task_id]

    opened(client, trainer=2)
    with pytest.raises(FencedError):
        client.call("beat", fenced, Orders)
    with pytest.raises(NotKnownError):
        client.call("beat", beat.model_copy(update={"trainer": 2}), Orders)
    unknown = OpenWindow(trainer=2, window="2027-01-01", generation=1, step=0, sealed={}, used={})
    with pytest.raises((ConfigError, DataError, InfrastructureError), match="2027-01-01"):
        client.call("open", unknown, Opened)


def test_a_seal_survives_the_driver(driver: tuple[DataPath, DriverClient]) -> None:
    path, client = driver
    window = opened(client)
    call = SealCall(trainer=1, session=window.session, step=9, progress={})
    client.call("seal", call, Done)
    assert path.status().sealed_step == 9
    path.kill("driver-0")
    assert until(lambda: path.status().incarnation == 2, 60)
    with pytest.raises(NotKnownError):
        client.call("seal", call, Done)
    assert opened(client).session > window.session
    opened(client, trainer=2)
    with pytest.raises(FencedError):
        opened(client)


class _Storage:
    """A source whose storage keeps positions; it does not answer at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.committed: list[dict[str, Position]] = []
        self.closed = 0

    def commit(self, group: str, progress: dict[str, tuple[DataTask, Position]]) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no broker")
        assert group == "forebay.clicks"
        self.committed.append({task: position for task, (_, position) in progress.items()})

    def close(self) -> None:
        self.closed += 1


class _Window:
    def data_tasks(self, source: str, positions: Progress) -> dict[str, Any]:
        of_source = {name: at for name, at in positions.items() if name.startswith(f"{source}/")}
        return {name: (None, at.position) for name, at in of_source.items()}


def test_commits_are_repeated_until_storage_took_the_newest() -> None:
    storage = _Storage(failures=1)
    commits = SealCommitter("forebay.{}".format, {"clicks": lambda: storage})  # type: ignore[dict-item,return-value]
    for row in (5, 9):
        progress = {
            "clicks/0": TaskProgress(position=Position(row, 0)),
            "history/0": TaskProgress(position=Position(0, 0)),
        }
        number = commits.submit(_Window(), progress)  # type: ignore[arg-type]
    commits.wait(number, 10)
    assert storage.committed[-1] == {"clicks/0": Position(9, 0)}
    assert storage.closed == 1
    storage.failures = 1000
    number = commits.submit(_Window(), progress)  # type: ignore[arg-type]
    with pytest.raises(InfrastructureError, match="could not be committed"):
        commits.wait(number, 0.3)
    commits.stop()
    nothing = SealCommitter("forebay.{}".format, {})
    nothing.wait(nothing.submit(_Window(), progress), 0.1)  # type: ignore[arg-type]
