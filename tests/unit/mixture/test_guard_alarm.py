"""The log says when a guard paused and resumed, once each; counts name what was left out."""

from __future__ import annotations

import logging

import pytest

from forebay.mixture.counting import CountingLearner
from forebay.mixture.guard_alarm import GuardAlarm
from forebay.mixture.label_guard import GuardState
from forebay.mixture.left_out import LeftOut, learnt_and_left_out


class Guarded(CountingLearner):
    """Two sources of the stream beside the history, of which the first may be broken."""

    paused = False
    others = True

    def guards(self) -> dict[str, list[GuardState | None]]:
        broken = GuardState(paused=self.paused, observed=1.25, expected=40.0)
        states = [None, broken, GuardState() if self.others else None]
        return {"stream": states, "mixture+head": states}


@pytest.mark.parametrize(
    ("others", "says"),
    [
        (True, "While every source of the stream is paused, scores"),
        (False, "Until labels arrive again, scores"),
    ],
)
def test_each_change_is_told_once_and_names_the_source(
    caplog: pytest.LogCaptureFixture, others: bool, says: str
) -> None:
    learner = Guarded(3)
    learner.others = others
    alarm = GuardAlarm(learner, ["history", "web", "shop"])
    with caplog.at_level(logging.INFO):
        for learner.paused in (False, True, True, False, False):
            alarm.look("2026-03-01", 7)
    paused, resumed = caplog.messages
    assert "step 7: training of mixture+head, stream on source web is paused" in paused
    assert (
        "1.2 of its last rows were positive (weighted by age), but memory expected 40.0" in paused
    )
    assert f"{says} come from the memory tower alone;" in paused
    assert resumed == "window 2026-03-01, step 7: mixture+head, stream trains on web again"


def test_rows_left_out_are_counted_beside_those_learnt() -> None:
    found = learnt_and_left_out({"stream": [3, 4]}, {"stream": LeftOut([1, 0], [0, 2])})
    assert found == {"stream": [3, 4], "stream/masked": [1, 0], "stream/paused": [0, 2]}
    assert learnt_and_left_out({"stream": [3, 4]}, {}) == {"stream": [3, 4]}
