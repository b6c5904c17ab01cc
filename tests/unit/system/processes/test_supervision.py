"""One supervised process, on a clock of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.there import there

from forebay.system.processes.supervision import RestartPolicy, SupervisedProcess

MEMORY = 100.0
POLICY = RestartPolicy(
    "always", 3, delay_first_seconds=1.0, delay_max_seconds=4.0, memory_seconds=MEMORY
)


@dataclass
class Played:
    code: int | None = None

    def poll(self) -> int | None:
        return self.code


def supervised(policy: RestartPolicy = POLICY, ends_before: int = 0) -> SupervisedProcess[Played]:
    return SupervisedProcess(Played, policy, due=0.0, ends_before=ends_before)


def end(process: SupervisedProcess[Played], code: int, now: float) -> str:
    there(process.running).code = code
    assert process.take_end() == code
    return process.plan(code, now).action


def test_it_starts_ends_and_starts_again() -> None:
    process = supervised()
    assert process.is_due(0.0)
    first = process.start()
    assert not process.is_due(10.0)
    assert process.take_end() is None
    assert process.running is first
    assert end(process, 4, now=10.0) == "restart"
    assert process.take_end() is None  # each end is reported once
    assert not process.is_due(10.9)
    assert process.is_due(11.0)
    assert process.start() is not first


def test_one_that_cannot_be_started_is_planned_again() -> None:
    def refuse() -> Played:
        raise OSError(12, "Cannot allocate memory")

    process, delays = SupervisedProcess(refuse, POLICY, due=0.0), []
    now = 0.0
    while process.due is not None:
        now = process.due
        with pytest.raises(OSError, match="memory"):
            process.start()
        assert process.due is None
        delays.append(process.plan(None, now).delay_seconds)
    assert delays == [1.0, 2.0, 4.0, 0.0]


def test_ends_under_an_earlier_owner_count_for_good() -> None:
    process = supervised(ends_before=3)
    process.start()
    assert (process.ends(10 * MEMORY), end(process, 4, now=10 * MEMORY)) == (3, "fail")
    assert process.due is None
    assert process.ends(10 * MEMORY) == 4


@pytest.mark.parametrize("act", [lambda process: process.start(), lambda process: None])
def test_a_stopped_one_is_neither_running_nor_planned(
    act: Callable[[SupervisedProcess[Played]], object],
) -> None:
    process = supervised()
    act(process)
    process.forget()
    assert process.take_end() is None
    assert not process.is_due(1e9)


@given(st.lists(st.floats(0.0, 3 * MEMORY), max_size=40))
@example([MEMORY] * 20)
def test_it_gives_up_only_after_too_many_recent_ends(pauses: list[float]) -> None:
    process, now = supervised(), 0.0
    counted: list[float] = []
    for pause in pauses:
        process.start()
        now += pause
        counted.append(now)
        recent = sum(1 for end in counted if now - end < MEMORY)
        action = end(process, 4, now)
        assert action == ("restart" if recent <= POLICY.restarts_max else "fail")
        if action == "fail":
            assert process.due is None
            break
        assert process.due == now + POLICY.delay(recent)
