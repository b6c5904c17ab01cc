"""The failover decision: the cases that upstream left untested, and properties."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.executors.supervisor.restarts import (
    BACKOFF_FIRST_SECONDS,
    BACKOFF_MAX_SECONDS,
    FATAL_CODES,
    Decision,
    FailoverPolicy,
    backoff_seconds,
)

EVICTED = -1818
CODES = st.integers(-64, 255)
POLICIES = st.builds(
    FailoverPolicy,
    restart=st.sampled_from(["on_failure", "always", "never"]),
    restarts_max=st.integers(0, 10),
    at_limit=st.sampled_from(["fail", "ignore"]),
    uncounted_codes=st.frozensets(st.sampled_from([EVICTED, 75, -15])),
)


def actions(policy: FailoverPolicy, codes: Sequence[int]) -> list[str]:
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
    assert actions(FailoverPolicy("on_failure", 2), [4, 4, 4]) == ["restart", "restart", "fail"]
    assert actions(FailoverPolicy("on_failure", 0), [4]) == ["fail"]


def test_f2_never_always_and_ignore_at_the_limit() -> None:
    never = FailoverPolicy("never", 3)
    assert actions(never, [0]) == ["ignore"]
    assert actions(never, [4]) == ["ignore"]
    always = FailoverPolicy("always", 3)
    assert actions(always, [0, 4, 0, 0]) == ["restart", "restart", "restart", "fail"]
    spared = FailoverPolicy("always", 1, at_limit="ignore")
    assert actions(spared, [4, 4]) == ["restart", "ignore"]
    assert actions(FailoverPolicy("on_failure", 3), [0]) == ["ignore"]


def test_f3_an_eviction_never_counts() -> None:
    policy = FailoverPolicy("on_failure", 1, uncounted_codes=frozenset({EVICTED}))
    assert actions(policy, [EVICTED] * 10 + [4, 4]) == ["restart"] * 11 + ["fail"]


@given(POLICIES, st.integers(0, 20), st.sampled_from(sorted(FATAL_CODES)))
def test_wrong_yaml_and_bad_data_fail_at_once(policy: FailoverPolicy, ends: int, code: int) -> None:
    assert policy.decide(ends, code).action == "fail"


@given(POLICIES, st.lists(CODES, max_size=40))
def test_counted_restarts_never_exceed_the_limit(policy: FailoverPolicy, codes: list[int]) -> None:
    ends = restarts = 0
    for code in codes:
        decision = policy.decide(ends, code)
        ends += decision.counted
        restarts += decision == Decision("restart", counted=True)
    assert restarts <= policy.restarts_max


@given(POLICIES, CODES)
def test_more_ends_never_make_a_restart_likelier(policy: FailoverPolicy, code: int) -> None:
    restarted = [policy.decide(ends, code).action == "restart" for ends in range(15)]
    assert restarted == sorted(restarted, reverse=True)


@given(POLICIES, st.integers(0, 20), CODES)
def test_never_means_never(policy: FailoverPolicy, ends: int, code: int) -> None:
    if policy.restart == "never":
        assert policy.decide(ends, code).action != "restart"


def test_ends_are_not_negative() -> None:
    with pytest.raises(ValueError, match="counts from 0"):
        FailoverPolicy("always", 1).decide(-1, 0)


@given(st.integers(0, 10**9))
def test_backoff_doubles_within_bounds(ends: int) -> None:
    pause = backoff_seconds(ends)
    assert BACKOFF_FIRST_SECONDS <= pause <= BACKOFF_MAX_SECONDS
    assert backoff_seconds(ends + 1) in {pause, 2 * pause, BACKOFF_MAX_SECONDS}


def test_backoff_series() -> None:
    assert [backoff_seconds(end) for end in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
