"""Whatever dies and whenever: each dead row has one letter, or is one of those that have none."""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.letters import letter, letter_file, task

from forebay.datatasks.tasks import Chunk, DataTask, Position, TaskProgress
from forebay.executors.data_executor import chunk_rows
from forebay.executors.data_executor.chunk_rows import PendingLetters, ServedChunk
from forebay.executors.data_executor.epoch import ServingEpoch
from forebay.executors.job.measures import PhaseSeconds
from forebay.executors.trainer.inbox import Frame, Inbox
from forebay.executors.window_files.dead_letters import DEAD_FOLDER, SealedLetters, read_letters
from forebay.mixture.queue.queue import Limits, PrioritisedQueue, QueueClosedError, QueueSources

SOURCES = ["clicks", "history"]
FRAME_BYTES = 1_000  # a few letters
CHUNK_ROWS = 7
LIMITS = Limits(2, 10_000, 1 << 20, CHUNK_ROWS, flush_seconds=0.0)
# What happens to each row of a task: it is served, or dead, the last one a range of five.
SERVED, DEAD, RANGE = 0, 1, 5
Rows = list[int]


def batch(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(rows), pa.int64())], names=["row"])


@dataclass
class Reading:
    """A task that a runner reads, from `at` on."""

    task: DataTask
    rows: Rows
    at: TaskProgress

    @property
    def source(self) -> int:
        return SOURCES.index(self.task.source)

    def chunk(self) -> ServedChunk:
        first = self.at.position.row
        rows = self.rows[first : first + CHUNK_ROWS]
        numbers = np.arange(first, first + len(rows), dtype=np.int64)
        none = np.zeros(len(rows), np.int64)
        end = Position(0, first + len(rows))
        chunk = Chunk(batch(0), none, none, numbers, none.astype(np.int32), end)
        kept = np.flatnonzero(np.array(rows) == SERVED)
        dead = [
            letter(first + place, '{"user": 7}', rows=kind).model_copy(
                update={"location": {"task": self.task.task_id, "row": first + place}}
            )
            for place, kind in enumerate(rows)
            if kind != SERVED
        ]
        return ServedChunk(batch(len(kept)), kept, dead, chunk, self.at)


@dataclass
class World:
    """A window of some tasks, one data executor and one trainer, one thing after the other."""

    tasks: dict[str, Rows]
    most: int
    folder: Path
    epochs: int = 0
    readings: list[Reading] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sealed: tuple[SealedLetters, dict[str, TaskProgress]] = (SealedLetters(), {})
        self.begin()

    def begin(self) -> None:
        """A trainer begins where the newest seal is."""
        letters, progress = self.sealed
        self.inbox, self.file = Inbox(progress), letter_file(self.folder, self.most, letters)
        self.serve(progress)

    def serve(self, taken: dict[str, TaskProgress]) -> None:
        """A new data executor reads on from what the trainer has taken."""
        self.epochs += 1
        self.inbox.open(self.epochs)
        sources = QueueSources(SOURCES, ["batch", "stream"], [1.0, 2.0], [0, 1], [0.0, 0.0])
        queue = PrioritisedQueue(sources, LIMITS, dict.fromkeys(SOURCES, 9))
        pending, unused = PendingLetters(dict.fromkeys(SOURCES, self.most)), Any
        made: Any = ServingEpoch
        self.epoch = made(
            self.epochs, 0, queue, unused, pending, *[unused] * 3, PhaseSeconds(), unused
        )
        self.readings = []
        for name, rows in self.tasks.items():
            source, _, number = name.partition("/")
            at = taken.get(name, TaskProgress(position=Position(0, 0)))
            if not at.ended:
                self.readings.append(Reading(task(int(number), source), rows, at))
                queue.open_task(SOURCES.index(source), name, 0)
        queue.set_pending({}, is_last=True)

    def read(self, chosen: random.Random) -> None:
        reading = chosen.choice(self.readings) if self.readings else None
        if reading is None:
            return
        queue, name = self.epoch.queue, reading.task.task_id
        if not queue.reserve(reading.source, name, 0):
            return
        if reading.at.position.row < len(reading.rows):
            found = reading.chunk()
            self.wait_for(reading.task, found)
            queue.put(reading.source, name, found.buffered(0))
            reading.at = found.after
        else:
            self.readings.remove(reading)
            end = reading.at.model_copy(update={"ended": True})
            queue.end_task(reading.source, name, end)

    def wait_for(self, read: DataTask, found: ServedChunk) -> None:
        """Until its letters are there: while too many are, frames have to leave."""
        rest = read, found.dead, found.before.dead_rows
        thread = threading.Thread(target=self.epoch.letters.add, args=rest)
        thread.start()
        while thread.is_alive():
            self.send()

    def send(self) -> None:
        found = self.epoch.next(0)
        if found is not None:
            head, _ = found
            assert sum(len(each.line) for each in head.letters) <= FRAME_BYTES
            self.inbox.put(Frame.of(head, None, Any))

    def use(self) -> None:
        """All dead rows that are counted now have their letters: with this frame, no other."""
        frame = self.inbox.take()
        if frame is not None:
            self.file.append(frame.letters)
            self.inbox.use(frame)
            left_out = Counter(self.file.sealed().left_out)
            assert self.rows() + left_out == +self.inbox.dead_rows

    def fence(self) -> None:
        self.epoch.close()
        with pytest.raises(QueueClosedError):
            self.epoch.next(0)
        self.serve(self.inbox.fence_all())

    def seal(self) -> None:
        self.sealed = self.file.sealed(), dict(self.inbox.used)

    def kill(self, most: int) -> None:
        """The trainer dies; its successor may keep more letters, or fewer."""
        self.most = most
        self.begin()

    def rows(self) -> Counter[str]:
        rows: Counter[str] = Counter()
        for each in read_letters(self.folder / DEAD_FOLDER):
            rows[each.source] += each.rows
        return rows

    @property
    def ended(self) -> bool:
        return self.inbox.ended == len(self.tasks)


ROWS = st.lists(st.sampled_from([SERVED, SERVED, DEAD, DEAD, RANGE]), max_size=60)
TASKS = st.lists(ROWS, min_size=1, max_size=4).map(
    lambda tasks: {f"{SOURCES[n % 2]}/{n}": rows for n, rows in enumerate(tasks)}
)
MOST = st.sampled_from([0, 500, 3_000, 1 << 20])
FAULTS = st.lists(st.sampled_from(["seal", "fence", "kill"]), max_size=8)


@pytest.fixture(scope="module", autouse=True)
def small_frames() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_rows, "PENDING_BYTES", FRAME_BYTES)
        yield


@settings(deadline=None, max_examples=150)
@given(TASKS, MOST, MOST, FAULTS, st.integers(0, 1 << 32))
def test_each_dead_row_has_one_letter_or_is_counted(
    tasks: dict[str, Rows], most: int, later: int, faults: list[str], seed: int
) -> None:
    chosen = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        world = World(tasks, most, Path(folder))
        while not world.ended or faults:
            act = chosen.choice(["read", "read", "send", "send", "use", "fault"])
            if act == "read":
                world.read(chosen)
            elif act == "fault":
                fault = faults.pop() if faults else "seal"
                world.kill(later) if fault == "kill" else getattr(world, fault)()
            else:
                getattr(world, act)()
        dead = {
            (name, row) for name, rows in tasks.items() for row, kind in enumerate(rows) if kind
        }
        letters = list(read_letters(world.folder / DEAD_FOLDER))
        places = [(each.location["task"], each.location["row"]) for each in letters]
        assert len(places) == len(set(places))
        if min(most, later) > 1 << 19:
            assert set(places) == dead
        left_out = Counter(world.file.sealed().left_out)
        counted: Counter[str] = Counter()
        for name, rows in tasks.items():
            counted[name.partition("/")[0]] += sum(rows)
        assert world.rows() + left_out == +counted


def test_rows_that_come_while_a_frame_waits_for_them_have_their_letters(tmp_path: Path) -> None:
    world = World({"clicks/0": [DEAD, SERVED]}, 1 << 20, tmp_path)
    pop = world.epoch.queue.pop

    def later(seconds: float) -> Any:
        world.read(random.Random(0))
        return pop(seconds)

    world.epoch.queue.pop = later  # type: ignore[method-assign]
    found = world.epoch.next(0.1)
    assert found is not None
    assert [each.rows for each in (found[0], *found[0].letters)] == [1, 1]


def test_who_reads_waits_while_too_much_is_pending() -> None:
    """Until a frame leaves, even if no row is left to be served; or until the epoch ends."""
    pending, ended = PendingLetters({"clicks": 1 << 20}), threading.Event()

    def read() -> None:
        with suppress(QueueClosedError):
            pending.add(task(), [letter(row) for row in range(1_000)], 0)
            return
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    found = 0
    while found < 250:
        letters = pending.take()
        assert sum(len(each.line) for each in letters) <= FRAME_BYTES
        assert all(each.first == found + n for n, each in enumerate(letters))
        found += len(letters)
    assert not ended.wait(0.1)
    assert 0 < len(pending.take()) < 10
    pending.close()
    thread.join(10)
    assert ended.is_set()
