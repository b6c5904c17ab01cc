"""Strangers at the sockets of a driver and a data executor: refused, and nothing is held up."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import psutil
import pytest
from pyarrow import flight
from support.data_path import Counter, DataPath
from support.memory_peak import MemoryPeak
from support.strangers import (
    BOMB,
    EMPTY_SETTINGS,
    PREFACE,
    answer,
    codes,
    connected,
    serving_history,
    short,
    silent_calls,
    sockets_of,
    token_of,
    until,
)

REFUSED = grpc.StatusCode.UNAUTHENTICATED
# What a process takes for a message that it does not read: parts of it wait in its buffers.
GROWTH_MAX = 48 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPath]:
    """A driver and a data executor that serve."""
    # Deeper than the path of a socket may be.
    root = tmp_path_factory.mktemp("job").joinpath(*["a-folder-with-a-long-name"] * 5)
    with serving_history(root) as made:
        yield made


def only(path: DataPath, role: str) -> Path:
    (found,) = sockets_of(path.job_dir, role)
    return found


def answers_at_once(path: DataPath) -> bool:
    """Whether callers with the token are heard, by the driver and by the data executor."""
    began, here = time.monotonic(), only(path, "data")
    path.status()
    return opens(here, token_of(here)) and time.monotonic() - began < 3


def opens(here: Path, token: str) -> bool:
    return answer(here, token) not in {REFUSED, grpc.StatusCode.UNAVAILABLE}


@pytest.mark.parametrize("role", ["driver", "data"])
def test_only_its_own_token_opens_a_socket(path: DataPath, role: str) -> None:
    here, other = only(path, role), only(path, {"driver": "data", "data": "driver"}[role])
    own = token_of(here)
    assert opens(here, own)
    wrong = (None, "", "x" * 43, token_of(other), own[:-1], f"{own}x", own.swapcase())
    assert {answer(here, token) for token in wrong} == {REFUSED}


def test_other_calls_of_flight_are_refused_too(path: DataPath) -> None:
    with short(only(path, "data")) as name:
        bare = flight.FlightClient(f"grpc+unix://{name}")
        for call in (bare.list_flights, bare.list_actions):
            with pytest.raises(flight.FlightUnauthenticatedError):
                list(call())
        bare.close()


@pytest.mark.parametrize("role", ["driver", "data"])
def test_a_token_dies_with_its_process(path: DataPath, role: str) -> None:
    before, old = only(path, role), token_of(only(path, role))
    path.kill(f"{role}-0")
    assert until(lambda: sockets_of(path.job_dir, role) not in ([], [before]), 60)
    path.status()
    assert only(path, role) != before
    assert answer(only(path, role), old) is REFUSED
    assert until(lambda: path.status().executors == [0], 60), "the executor is back"


@pytest.mark.parametrize("role", ["driver", "data"])
def test_calls_that_send_nothing_hold_nothing(path: DataPath, role: str) -> None:
    with silent_calls(only(path, role), 60) as calls:
        assert answers_at_once(path)
        assert until(lambda: all(call.done() for call in calls), 5), "they are refused meanwhile"
        assert codes(calls) == {REFUSED: 60}


def test_connections_that_send_nothing_are_closed(path: DataPath) -> None:
    with ExitStack() as opened:
        for index in range(300):
            client = opened.enter_context(connected(only(path, "driver")))
            with suppress(ConnectionError):  # it was one too many
                client.sendall(PREFACE[: index % 20])
        connections = psutil.Process(path.processes["driver-0"].pid).net_connections
        assert until(lambda: len(connections("unix")) < 120, 2), "more than so many are not taken"
        assert until(lambda: len(connections("unix")) < 10, 10), "and none for long"
        assert answers_at_once(path)


def test_connections_that_send_nothing_keep_nobody_out_of_a_data_executor(path: DataPath) -> None:
    with ExitStack() as opened:
        for index in range(300):
            client = opened.enter_context(connected(only(path, "data")))
            client.sendall(PREFACE[: index % 20])
        assert answers_at_once(path)


@pytest.mark.parametrize("role", ["driver", "data"])
@pytest.mark.parametrize(
    "beginning", [b"", b"GET / HTTP/1.1\r\n\r\n", PREFACE, PREFACE + EMPTY_SETTINGS]
)
def test_bytes_that_mean_nothing_end_the_connection(
    path: DataPath, role: str, beginning: bytes
) -> None:
    with connected(only(path, role)) as client:
        client.sendall(beginning + b"\xa5" * 100_000)
        client.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while client.recv(1 << 16):
                pass
    assert answers_at_once(path)


def test_a_large_message_is_neither_read_without_a_token_nor_unpacked_for_one(
    path: DataPath,
) -> None:
    driver, memory = only(path, "driver"), MemoryPeak(path.processes["driver-0"].pid)
    assert answer(driver, None, BOMB) is REFUSED
    for token in (None, token_of(driver)):
        assert answer(driver, token, BOMB, packed=True) is grpc.StatusCode.UNIMPLEMENTED
    assert memory.growth < GROWTH_MAX


def test_the_window_is_read_afterwards(path: DataPath) -> None:
    """By a trainer, from the very processes that all this was tried on."""
    counter, window = Counter(path), path.windows[0]
    reader = path.reader()
    reader.begin(window.key, window.generation, {}, 0)
    counter.consume(reader)
    reader.close()
    assert sum(each["rows"] for each in counter.sums()) == 2_000
