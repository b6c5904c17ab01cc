"""The graph of operations: acyclic, complete, chronological, whatever order things end in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.graph import Kind, Operation, WindowGraph

SIZES = st.tuples(st.integers(0, 6), st.integers(0, 4))


def graph(size: tuple[int, int]) -> WindowGraph:
    return WindowGraph.of([f"w{n}" for n in range(size[0])], [f"s{n}" for n in range(size[1])])


@given(SIZES, st.data())
def test_any_order_of_ends_runs_everything_and_sinks_in_order(
    size: tuple[int, int], data: Any
) -> None:
    dtgg, done, sunk = graph(size), set[Operation](), []
    while ready := dtgg.ready_operations(done):
        operation = data.draw(st.sampled_from(ready))
        assert dtgg.dependencies[operation] <= done
        if operation.kind is Kind.SINK:
            listed = {
                each.source
                for each in done
                if each.kind is Kind.SOURCE and each.window == operation.window
            }
            assert listed == {f"s{n}" for n in range(size[1])}
            sunk.append(operation.window)
        done.add(operation)
    assert done == set(dtgg.operations)
    assert sunk == [f"w{n}" for n in range(size[0])]


@given(SIZES)
def test_the_listed_order_is_one_that_can_run(size: tuple[int, int]) -> None:
    done: set[Operation] = set()
    for operation in graph(size).operations:
        assert graph(size).dependencies[operation] <= done
        done.add(operation)
    assert len(done) == size[0] * (size[1] + 3)


@given(st.integers(1, 6), st.data())
def test_a_failed_window_stops_itself_and_later_sinks_only(windows: int, data: Any) -> None:
    dtgg = graph((windows, 2))
    broken = data.draw(st.integers(0, windows - 1))
    failed = Operation(Kind.SOURCE, f"w{broken}", "s1")
    blocked = dtgg.blocked_by([failed])
    done: set[Operation] = set()
    while ready := [each for each in dtgg.ready_operations(done) if each not in blocked]:
        done.update(ready)
    sunk = {operation.window for operation in done if operation.kind is Kind.SINK}
    assert sunk == {f"w{n}" for n in range(broken)}
    assert blocked | done == set(dtgg.operations)
    assert not blocked & done


@pytest.mark.parametrize(("windows", "sources"), [(["a", "a"], []), (["a"], ["s", "s"])])
def test_names_stand_once(windows: list[str], sources: list[str]) -> None:
    with pytest.raises(ValueError, match="distinct"):
        WindowGraph.of(windows, sources)


def test_an_operation_in_words() -> None:
    assert str(Operation(Kind.SOURCE, "2026-03-01", "clicks")) == "source 2026-03-01 clicks"
    assert str(Operation(Kind.SINK, "2026-03-01")) == "sink 2026-03-01"
