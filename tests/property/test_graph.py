"""A run of the graph: complete, chronological, whatever order things end in and whatever fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.planning.graph import Graph, GraphRun, Kind, Operation, window_graph

SIZES = st.tuples(st.integers(0, 6), st.integers(0, 4))


def graph(size: tuple[int, int]) -> Graph:
    return window_graph([f"w{n}" for n in range(size[0])], [f"s{n}" for n in range(size[1])])


class Driven:
    """Starts what may start and ends it in an order that hypothesis draws, as threads would."""

    def __init__(self, size: tuple[int, int], failing: set[Operation]) -> None:
        self.graph = graph(size)
        self.run = GraphRun(self.graph)
        self.started: list[Operation] = []
        self.open: list[Operation] = []
        self.done: set[Operation] = set()
        self.failing = failing

    def start_one(self) -> bool:
        operation = self.run.next()
        if operation is None:
            return False
        assert operation not in self.started
        assert self.graph[operation] <= self.done
        if operation.source:
            assert operation.source not in {each.source for each in self.open}
        self.started.append(operation)
        self.open.append(operation)
        return True

    def end(self, operation: Operation) -> None:
        self.open.remove(operation)
        failed = operation in self.failing
        self.run.finish(operation, failed=failed)
        if not failed:
            self.done.add(operation)

    def drive(self, data: Any) -> None:
        while True:
            started = data.draw(st.booleans(), "start") and self.start_one()
            if not started and not self.open and not self.start_one():
                return
            if self.open and not started:
                self.end(data.draw(st.sampled_from(self.open), "end"))

    def windows(self, kind: Kind) -> list[str]:
        return [each.window for each in self.started if each.kind is kind and each in self.done]


@given(SIZES, st.data())
def test_any_order_of_ends_runs_everything_and_sinks_in_order(
    size: tuple[int, int], data: Any
) -> None:
    driven = Driven(size, set())
    driven.drive(data)
    assert driven.done == set(driven.graph)
    assert len(driven.done) == size[0] * (size[1] + 3)
    assert driven.windows(Kind.SINK) == [f"w{n}" for n in range(size[0])]


@given(SIZES)
def test_one_after_the_other_is_the_listed_order(size: tuple[int, int]) -> None:
    driven = Driven(size, set())
    while driven.start_one():
        driven.end(driven.open[0])
    assert driven.started == list(driven.graph)


@given(st.integers(1, 6), st.data())
def test_a_failed_window_stops_itself_and_later_sinks_only(windows: int, data: Any) -> None:
    broken = data.draw(st.integers(0, windows - 1))
    failing = {Operation(Kind.SOURCE, f"w{broken}", "s1")}
    driven = Driven((windows, 2), failing)
    driven.drive(data)
    assert driven.windows(Kind.SINK) == [f"w{n}" for n in range(broken)]
    assert set(driven.graph) - driven.done == {
        *failing,
        Operation(Kind.JOINER, f"w{broken}"),
        *(Operation(Kind.SINK, f"w{n}") for n in range(broken, windows)),
    }


@pytest.mark.parametrize(("windows", "sources"), [(["a", "a"], []), (["a"], ["s", "s"])])
def test_names_stand_once(windows: list[str], sources: list[str]) -> None:
    with pytest.raises(ValueError, match="distinct"):
        window_graph(windows, sources)


def test_the_first_that_nothing_keeps_waiting_is_next() -> None:
    """Beginnings do not wait for one another, and of several sources the earlier window's goes."""
    run = GraphRun(graph((2, 2)))
    assert [str(run.next()), str(run.next()), run.next()] == ["timer w0", "timer w1", None]
    run.finish(Operation(Kind.TIMER, "w1"), failed=False)
    late = Operation(Kind.SOURCE, "w1", "s0")
    assert (run.next(), str(late)) == (late, "source w1 s0")
    run.finish(Operation(Kind.TIMER, "w0"), failed=False)
    assert run.next() == Operation(Kind.SOURCE, "w0", "s1"), "s0 lists another window"
    run.finish(late, failed=False)
    assert run.next() == Operation(Kind.SOURCE, "w0", "s0")
    run.finish(Operation(Kind.SOURCE, "w0", "s1"), failed=False)
    assert run.next() == Operation(Kind.SOURCE, "w1", "s1")


def test_whatever_waits_besides_an_earlier_window_goes_first() -> None:
    run = GraphRun(graph((3, 1)))
    timers = [Operation(Kind.TIMER, f"w{number}") for number in range(3)]
    first, second = (Operation(Kind.SOURCE, f"w{number}", "s0") for number in range(2))
    assert [run.next(), run.next()] == timers[:2]
    for timer in timers[:2]:
        run.finish(timer, failed=False)
    assert run.next() == first
    run.finish(first, failed=False)
    assert run.next() == Operation(Kind.JOINER, "w0"), "although w2 begins last"
    assert run.next() == second
