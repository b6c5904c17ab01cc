"""Frames over Flight, from a server of a scripted epoch to a stream of the trainer's side."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from support.served_rows import SCHEMA, batch_of_lists
from support.strangers import until
from support.there import there

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import InfrastructureError
from forebay.executors.data_executor.flight_server import POLL_SECONDS, FlightFrameServer, NextFrame
from forebay.executors.link.local import LocalLink
from forebay.executors.wire.flight import FlightStream, open_stream
from forebay.executors.wire.messages import FrameHead, Letter
from forebay.mixture.queue.queue import FrameRows, QueueClosedError

EPOCH = 7
_AT = {"clicks/0": TaskProgress(position=Position(0, 1))}


@dataclass
class Script:
    """An epoch whose minibatches are written down: those that were asked for are gone.

    letters: so many frames come first that bring nothing else.
    """

    frames: deque[FrameRows] = field(default_factory=deque)
    closed: bool = False
    sent: int = 0
    letters: int = 0

    def next(self, timeout_seconds: float) -> tuple[FrameHead, FrameRows] | None:
        if self.sent < self.letters:
            self.sent += 1
            none = FrameRows("batch", 0, [], [], {})
            head = head_of(none, self.sent - 1)
            letter = Letter(task_id="clicks/0", first=self.sent, end=self.sent + 1, line="{}")
            return head.model_copy(update={"letters": [letter]}), none
        if until(lambda: self.closed or bool(self.frames), timeout_seconds) and self.frames:
            rows = self.frames.popleft()
            self.sent += 1
            return head_of(rows, self.sent - 1), rows
        if self.closed:
            raise QueueClosedError
        return None


@dataclass
class Bench:
    """A server of one scripted epoch, in the job of a folder."""

    link: LocalLink
    server: FlightFrameServer
    script: Script
    claimed: int = 0

    def stream(self, epoch: int = EPOCH) -> FlightStream:
        return open_stream(self.link, self.server.address, epoch)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    script = Script()

    def claim(epoch: int) -> NextFrame | None:
        if epoch != EPOCH or made.claimed:
            return None
        made.claimed += 1
        return script.next

    link = LocalLink(tmp_path, "data")
    server = FlightFrameServer(link, SCHEMA, claim)
    made = Bench(link, server, script)
    server.start()
    yield made
    script.closed = True
    server.close()


def head_of(rows: FrameRows, sequence: int) -> FrameHead:
    return FrameHead(
        executor="data-0",
        epoch=EPOCH,
        sequence=sequence,
        feed=rows.feed,
        hour=rows.hour,
        segments=rows.segments,
        progress=_AT if rows.segments else {},
    )


def rows_of(*batches: pa.RecordBatch) -> FrameRows:
    return FrameRows("batch", 3, [(0, sum(each.num_rows for each in batches))], [*batches], {})


def test_rows_arrive_as_they_were_in_order(bench: Bench) -> None:
    """Slices, several batches of one frame, lists without values, and frames without rows."""
    sent = [
        [batch_of_lists(1000, seed=1)],
        [batch_of_lists(50, seed=2).slice(7, 31), batch_of_lists(9, seed=3).slice(8)],
        [],
        [batch_of_lists(3, seed=4, longest=0)],
    ]
    bench.script.frames += [rows_of(*batches) for batches in sent]
    stream = bench.stream()
    stream.grant(len(sent))
    for sequence, batches in enumerate(sent):
        head, batch = there(stream.receive())
        assert head == head_of(rows_of(*batches), sequence)
        if not batches:
            assert batch is None
            continue
        assert batch is not None
        batch.validate(full=True)
        wanted = pa.Table.from_batches(batches).combine_chunks()
        assert pa.Table.from_batches([batch]).combine_chunks() == wanted
    stream.close()


def test_rows_stay_while_later_frames_come(bench: Bench) -> None:
    batches = [batch_of_lists(500, seed=seed) for seed in range(20)]
    bench.script.frames += [rows_of(each) for each in batches]
    stream = bench.stream()
    stream.grant(len(batches))
    received = [stream.receive() for _ in batches]
    found = [each[1] for each in received if each is not None]
    assert found == batches
    labels = found[3].column("label").to_numpy()
    del received, found
    bench.script.frames += [rows_of(each) for each in batches]
    stream.grant(len(batches))
    for _ in batches:
        stream.receive()
    assert labels.tolist() == batches[3].column("label").to_pylist()
    stream.close()


def test_nothing_is_taken_from_the_queue_without_a_credit(bench: Bench) -> None:
    bench.script.frames += [rows_of(batch_of_lists(10, seed=seed)) for seed in range(5)]
    stream = bench.stream()
    assert not until(lambda: bench.script.sent > 0, 0.3)
    for wanted in (2, 3, 5):
        stream.grant(wanted - bench.script.sent)
        assert until(lambda wanted=wanted: bench.script.sent == wanted)
        assert not until(lambda wanted=wanted: bench.script.sent > wanted, 0.3)
    stream.close()


def test_letters_alone_use_no_credit(bench: Bench) -> None:
    """However many come first: what was granted is left for rows, and is used up by them."""
    bench.script.letters = 5
    bench.script.frames += [rows_of(batch_of_lists(10, seed=seed)) for seed in range(3)]
    stream = bench.stream()
    stream.grant(2)
    heads = [there(stream.receive())[0] for _ in range(7)]
    assert [each.rows for each in heads] == [0] * 5 + [10] * 2
    assert not until(lambda: bench.script.sent > 7, 0.3)
    stream.grant(1)
    assert there(stream.receive())[0].rows == 10
    stream.close()


def test_an_epoch_that_ends_ends_its_stream(bench: Bench) -> None:
    bench.script.frames.append(rows_of(batch_of_lists(10)))
    stream = bench.stream()
    stream.grant(2)
    assert stream.receive() is not None
    bench.script.closed = True
    assert stream.receive() is None
    stream.grant(1)  # nobody is there any more, and nothing is wrong with that
    stream.close()


def test_an_epoch_is_served_once_to_one_caller(bench: Bench) -> None:
    first = bench.stream()
    first.grant(1)
    assert until(lambda: bench.claimed == 1)
    for epoch in (EPOCH, EPOCH + 1, -1):
        other = bench.stream(epoch)
        other.grant(1)
        with pytest.raises(InfrastructureError, match=rf"epoch {epoch} is not available"):
            other.receive()
        other.close()
    bench.script.frames.append(rows_of(batch_of_lists(10)))
    assert first.receive() is not None
    first.close()


@pytest.mark.parametrize("credit", [0, 1], ids=["without credit", "with one"])
def test_who_waits_for_a_frame_can_be_stopped(bench: Bench, credit: int) -> None:
    stream, found = bench.stream(), []
    if credit:
        stream.grant(credit)
    waiting = threading.Thread(target=lambda: found.append(stream.receive()))
    waiting.start()
    assert until(lambda: bench.claimed == 1)
    stream.close()
    waiting.join(10)
    assert found == [None]
    stream.close()


def test_a_caller_that_went_away_is_noticed(bench: Bench) -> None:
    stream = bench.stream()
    stream.grant(1)
    assert until(lambda: bench.claimed == 1)
    stream.close()
    stream.receive()
    until(lambda: False, 5 * POLL_SECONDS)
    bench.script.frames.append(rows_of(batch_of_lists(10)))
    assert not until(lambda: bench.script.sent > 0, 0.3), "nothing is taken for it any more"


def test_nobody_at_an_address_is_an_error_that_names_it(bench: Bench) -> None:
    gone = f"{bench.server.address[:-16]}0123456789abcdef"
    with pytest.raises(InfrastructureError, match=f"data executor at {gone}"):
        open_stream(bench.link, gone, EPOCH)
