"""One supervised process, on a clock of the test, and whether it is started again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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


EVICTED = -1818
FATAL = frozenset({1, 3})
CODES = st.none() | st.integers(-64, 255)
POLICIES = st.builds(
    RestartPolicy,
    restart=st.sampled_from(["on_failure", "always", "never"]),
    restarts_max=st.integers(0, 10),
    delay_first_seconds=st.floats(0.0, 1.0),
    delay_max_seconds=st.floats(1.0, 10.0),
    at_limit=st.sampled_from(["fail", "ignore"]),
    fatal_codes=st.just(FATAL),
    uncounted_codes=st.frozensets(st.sampled_from([EVICTED, 75, -15])),
)


def restart(when: Any, restarts_max: int, **others: Any) -> RestartPolicy:
    delays = {"delay_first_seconds": 0.1, "delay_max_seconds": 2.0}
    return RestartPolicy(when, restarts_max, **delays, **others)


def actions(policy: RestartPolicy, codes: Sequence[int | None]) -> list[str]:
    """Decisions on a series of ends, up to the one after which nothing runs."""
    taken: list[str] = []
    ends = 0
    for code in codes:
        decision = policy.decide(ends, code)
        ends += decision.counted
        taken.append(decision.action)
        if decision.action != "restart":
            break
    return taken


def test_f1_the_end_after_the_last_restart_fails_the_job() -> None:
    # Upstream's "3 failures at most" is 2 restarts.
    assert actions(restart("on_failure", 2), [4, 4, 4]) == ["restart", "restart", "fail"]
    assert actions(restart("on_failure", 0), [4]) == ["fail"]
    with pytest.raises(ValueError, match="counts from 0"):
        restart("always", 1).decide(-1, 0)


def test_f2_never_always_and_ignore_at_the_limit() -> None:
    never = restart("never", 3)
    assert (actions(never, [0]), actions(never, [4])) == (["ignore"], ["ignore"])
    always = restart("always", 3)
    assert actions(always, [0, 4, 0, 0]) == ["restart"] * 3 + ["fail"]
    assert actions(restart("always", 1, at_limit="ignore"), [4, 4]) == ["restart", "ignore"]
    assert actions(restart("on_failure", 3), [0]) == ["ignore"]


def test_f3_an_eviction_never_counts() -> None:
    policy = restart("on_failure", 1, uncounted_codes=frozenset({EVICTED}))
    assert actions(policy, [EVICTED] * 10 + [4, 4]) == ["restart"] * 11 + ["fail"]


@given(POLICIES, st.integers(0, 20), st.sampled_from(sorted(FATAL)))
def test_fatal_codes_fail_at_once(policy: RestartPolicy, ends: int, code: int) -> None:
    assert policy.decide(ends, code).action == "fail"


@given(POLICIES, st.lists(CODES, max_size=40))
def test_counted_restarts_never_exceed_the_limit(
    policy: RestartPolicy, codes: list[int | None]
) -> None:
    ends = restarts = 0
    for code in codes:
        decision = policy.decide(ends, code)
        ends += decision.counted
        restarts += decision.action == "restart" and decision.counted
    assert restarts <= policy.restarts_max


@given(POLICIES, CODES)
def test_more_ends_never_make_a_restart_likelier(policy: RestartPolicy, code: int | None) -> None:
    restarted = [policy.decide(ends, code).action == "restart" for ends in range(15)]
    assert restarted == sorted(restarted, reverse=True)


@given(POLICIES, st.integers(0, 20), CODES)
def test_never_means_never(policy: RestartPolicy, ends: int, code: int | None) -> None:
    if policy.restart == "never":
        assert policy.decide(ends, code).action != "restart"


@given(POLICIES, st.integers(0, 10**9))
def test_delays_double_within_bounds(policy: RestartPolicy, ends: int) -> None:
    delay = policy.delay(ends)
    assert policy.delay_first_seconds <= delay <= policy.delay_max_seconds
    assert policy.delay(ends + 1) in {delay, 2 * delay, policy.delay_max_seconds}


@given(POLICIES, st.integers(0, 20), CODES)
def test_a_restart_waits_as_long_as_its_counted_ends_say(
    policy: RestartPolicy, ends: int, code: int | None
) -> None:
    decision = policy.decide(ends, code)
    restarts = decision.action == "restart"
    assert decision.delay_seconds == (policy.delay(ends + decision.counted) if restarts else 0.0)
