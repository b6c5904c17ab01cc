"""Declarations that change between windows: no row comes twice, and none is left out unsaid."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.links import window_of
from support.stages import memory_source, pipeline

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.operations import shares_of
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.model_line.coverage import Coverage, extended, misplaced, withheld

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
# Hours since the first window began, on its borders and between them.
instants = st.sampled_from([None, None, *range(-24, 200, 12)])
declarations = st.tuples(instants, instants, st.sampled_from([0, 0, 0, 24, 12]))


def planned(day: int, source: SourceSpec, offset: int) -> WindowPlan:
    window = window_of(f"2026-03-{day + 1:02}")
    stream = {"sources": ["a"], "offset": f"{offset}h"}
    spec = pipeline(("a",), dataset={"streams": {"a": stream}})
    (share,) = shares_of(spec, {"a": source}, [window])["a"]
    values = {"window": window.key, "generation": 1, "start": window.start, "end": window.end}
    return WindowPlan.model_validate({**values, "sources": {"a": share.plan()}, "fingerprint": ""})


@given(st.lists(declarations, min_size=2, max_size=8))
def test_each_hour_is_trained_once_or_declared_away(changes: list[tuple[Any, Any, int]]) -> None:
    trained: Counter[int] = Counter()
    covered: Coverage | None = None
    first, held, day = 0, changes[0], 0
    for starts, ends, offset in changes:
        if starts is not None and ends is not None and starts >= ends:
            continue
        limits = {"starts": starts, "ends": ends}.items()
        keys = {name: BEGIN + at * HOUR for name, at in limits if at is not None}
        source = memory_source("a", **keys)
        plan = planned(day, source, offset)
        after = extended(covered, plan, plan.sources["a"])
        if covered is None:
            first = -offset
        else:
            span, _ = misplaced(covered, after, source.starts)
            if span.start < span.end or withheld(after, source):
                assert (starts, ends, offset) != held, "what did not change is never refused"
                continue
        covered, held, day = after, (starts, ends, offset), day + 1
        if after.asked_from is not None and after.asked_to is not None:
            asked = [(each - BEGIN) // HOUR for each in (after.asked_from, after.asked_to)]
            trained.update(range(*asked))
        assert set(trained.values()) <= {1}
        for hour in range(first, (covered.reached - BEGIN) // HOUR):
            away = (starts is not None and hour < starts) or (ends is not None and hour >= ends)
            assert away or trained[hour], f"hour {hour} is neither trained nor declared away"
