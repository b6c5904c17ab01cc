"""Strangers at a data executor's socket for packed frames: refused by name, and nothing held up."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest
from support.data_path import Counter, DataPath
from support.memory_peak import MemoryPeak
from support.strangers import (
    EMPTY_SETTINGS,
    PREFACE,
    answer_to,
    connected,
    hello,
    serving_history,
    sockets_of,
    token_of,
    until,
    words_of,
)

NO_TOKEN = "this socket requires the token of its process"
NO_CALLER = "this is not a caller of a data executor"
OTHER_COLUMNS = "the columns served are not those that this caller expects"
GROWTH_MAX = 16 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPath]:
    """A driver and a data executor that serve packed frames."""
    with serving_history(tmp_path_factory.mktemp("job"), "frames") as made:
        yield made


def only(path: DataPath, role: str = "data") -> Path:
    (found,) = sockets_of(path.job_dir, role)
    return found


def is_answered_at_once(path: DataPath) -> bool:
    """Whether somebody with the token is heard."""
    began = time.monotonic()
    return answer_to(only(path), hello(token_of(only(path)))) == OTHER_COLUMNS and (
        time.monotonic() - began < 3
    )


def test_only_its_own_token_opens_the_socket(path: DataPath) -> None:
    here = only(path)
    assert is_answered_at_once(path), "it reads what the token's owner wants"
    own, other = token_of(here), token_of(only(path, "driver"))
    wrong = ("", "x" * 43, other, own[:-1], f"{own}x", own.swapcase())
    assert {answer_to(here, hello(token)) for token in wrong} == {NO_TOKEN}


def test_a_token_dies_with_its_process(path: DataPath) -> None:
    before, old = only(path), token_of(only(path))
    path.kill("data-0")
    assert until(lambda: sockets_of(path.job_dir, "data") not in ([], [before]), 60)
    assert until(lambda: list(path.status().executors) == ["0"], 60), "the executor is back"
    assert only(path) != before
    assert answer_to(only(path), hello(old)) == NO_TOKEN


@pytest.mark.parametrize(
    "said",
    [
        b"\0",
        PREFACE,
        PREFACE + EMPTY_SETTINGS,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xa5" * 100_000,
        random.Random(24).randbytes(1 << 20),
    ],
    ids=["a byte", "HTTP/2", "settings", "HTTP/1", "one byte", "random"],
)
def test_bytes_that_mean_nothing_end_the_connection(path: DataPath, said: bytes) -> None:
    with connected(only(path)) as client, suppress(ConnectionError):
        client.sendall(said)
        assert words_of(client) in {NO_CALLER, ""}  # of a long text the rest is thrown away
    assert is_answered_at_once(path)


def test_another_version_is_refused_by_its_number(path: DataPath) -> None:
    said = bytearray(hello(token_of(only(path))))
    said[8:10] = (7).to_bytes(2, "little")
    assert "wants frames of version 7" in answer_to(only(path), bytes(said))


def test_a_large_message_is_not_read(path: DataPath) -> None:
    memory = MemoryPeak(path.processes["data-0"].pid)
    with connected(only(path)) as client, suppress(ConnectionError, TimeoutError):
        client.sendall(hello("x" * 43) + bytes(64 << 20))
    assert memory.growth < GROWTH_MAX
    assert is_answered_at_once(path)


def test_connections_that_say_nothing_make_room_and_are_closed(path: DataPath) -> None:
    connections = psutil.Process(path.processes["data-0"].pid).net_connections
    said = hello(token_of(only(path)))
    with ExitStack() as opened:
        for index in range(300):
            client = opened.enter_context(connected(only(path)))
            with suppress(ConnectionError):  # it was one too many
                client.sendall(said[: index % 100])
        assert is_answered_at_once(path), "who has the token is heard among them"
        assert until(lambda: len(connections("unix")) < 80, 3), "more than so many are not kept"
        assert until(lambda: len(connections("unix")) < 10, 10), "and none for long"


def test_half_of_a_hello_is_not_waited_for(path: DataPath) -> None:
    said = hello(token_of(only(path)))
    with connected(only(path)) as client:
        client.sendall(said[:-1])
        began = time.monotonic()
        assert words_of(client) == ""
        assert 3 < time.monotonic() - began < 15
    with connected(only(path)) as client:
        client.sendall(said[:60])
        client.shutdown(socket.SHUT_WR)
        assert words_of(client) == ""


def test_the_window_is_read_afterwards(path: DataPath) -> None:
    """By a trainer, from the very process that all this was tried on."""
    counter, window = Counter(path), path.windows[0]
    reader = path.reader()
    reader.begin(window.key, window.generation, {}, 0)
    counter.consume(reader)
    reader.close()
    assert sum(each["rows"] for each in counter.sums()) == 2_000
