"""Frames in the trainer: order, positions, counts, and what a fence answers."""

from __future__ import annotations

from dataclasses import replace

from support.there import there

from forebay.config.specs.datasets import Feed
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.executors.trainer.inbox import Frame, Inbox, source_of
from forebay.executors.wire.messages import Letter

ONE, TWO = 11, 12


def at(row: int, dead: int = 0, *, ended: bool = False) -> TaskProgress:
    return TaskProgress(position=Position(0, row), rows_read=row, dead_rows=dead, ended=ended)


def frame(epoch: int, hour: int, feed: Feed = "batch", rows: int = 3, **to: TaskProgress) -> Frame:
    progress = {name.replace("_", "/"): each for name, each in to.items()}
    return Frame(None, progress, "data-0", epoch, rows, hour, feed)


def letters(*numbers: int) -> list[Letter]:
    return [Letter(task_id="a/0", first=each, end=each + 1, line="{}") for each in numbers]


def opened(*epochs: int) -> Inbox:
    inbox = Inbox({})
    for epoch in epochs:
        inbox.open(epoch)
    return inbox


def test_of_several_epochs_the_earliest_hour_goes_first_and_of_equals_what_came_first() -> None:
    inbox = opened(ONE, TWO)
    late, early = frame(ONE, 5), frame(TWO, 2)
    first, second = frame(TWO, 5, "stream"), frame(ONE, 6, "stream")
    for each in (late, early, first, second):
        assert inbox.put(each)
    assert [inbox.take() for _ in range(5)] == [early, late, first, second, None]
    assert inbox.dropped_rows == 0


def test_only_open_epochs_are_taken_from() -> None:
    inbox = Inbox({})
    assert not inbox.put(frame(ONE, 0))
    assert (inbox.dropped_rows, inbox.is_open(ONE)) == (3, False)
    inbox.open(ONE)
    assert inbox.is_open(ONE)
    assert inbox.put(frame(ONE, 0))
    inbox.open(ONE)  # once more changes nothing
    assert inbox.take() is not None


def test_a_fence_answers_what_was_handed_out_and_drops_the_rest() -> None:
    inbox = Inbox({"a/0": at(1)})
    inbox.open(ONE)
    inbox.put(frame(ONE, 0, a_0=at(4)))
    inbox.put(frame(ONE, 1, a_0=at(7), rows=5))
    inbox.put(frame(ONE, 1, "stream", a_1=at(2), rows=7))
    taken = there(inbox.take())
    assert inbox.fence(ONE) == {"a/0": at(4)}
    assert inbox.fence(ONE) == {"a/0": at(4)}, "asked again"
    assert inbox.dropped_rows == 12
    assert inbox.take() is None
    inbox.open(ONE)
    assert not inbox.is_open(ONE), "an epoch is open once"
    assert inbox.fence(TWO) == {}
    inbox.use(taken)
    assert inbox.used == {"a/0": at(4)}


def test_used_positions_ends_and_dead_rows_are_counted_once() -> None:
    inbox = Inbox({"clicks/0": at(5, 2, ended=True), "clicks/1": at(1, 1), "b/0": at(1)})
    assert (inbox.ended, dict(inbox.dead_rows), inbox.news()) == (1, {"clicks": 3, "b": 0}, {})
    done = frame(ONE, 0, clicks_1=at(9, 4, ended=True), c_0=at(2, 1))
    inbox.use(done)
    inbox.use(done)
    assert (inbox.ended, dict(inbox.dead_rows)) == (2, {"clicks": 6, "b": 0, "c": 1})
    inbox.use(frame(ONE, 0, clicks_1=at(3)))  # an older position
    assert inbox.used["clicks/1"] == at(9, 4, ended=True)
    assert inbox.news() == {"clicks/1": at(9, 4, ended=True), "c/0": at(2, 1)}
    assert inbox.news() == {}


def test_a_source_may_have_slashes() -> None:
    assert source_of("a/b/17") == "a/b"


def test_all_epochs_are_fenced_at_once() -> None:
    inbox = Inbox({"a/0": at(1), "a/9": at(3, ended=True)})
    for epoch in (ONE, TWO):
        inbox.open(epoch)
    inbox.put(frame(ONE, 0, a_0=at(4)))
    inbox.put(frame(TWO, 1, a_1=at(2)))
    inbox.take()
    assert inbox.fence_all() == {"a/0": at(4), "a/9": at(3, ended=True)}
    assert not inbox.is_open(ONE)
    assert not inbox.is_open(TWO)


def test_a_fence_drops_letters_that_no_frame_has_counted_yet() -> None:
    inbox = opened(ONE, TWO)
    for epoch in (ONE, TWO):
        inbox.put(replace(frame(epoch, 0, rows=0), letters=letters(0, 1, 2)))
        assert inbox.take() is None, "it only brought letters"
    inbox.fence(ONE)
    inbox.put(frame(TWO, 0, a_0=at(3, 2)))
    assert list(there(inbox.take()).letters) == letters(0, 1)
