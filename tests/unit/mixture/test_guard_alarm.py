"""The log says when a guard paused and resumed, once each; counts name what was left out."""

from __future__ import annotations

import logging

import pytest

from forebay.mixture.counting import CountingLearner
from forebay.mixture.guard_alarm import GuardAlarm
from forebay.mixture.label_guard import GuardState
from forebay.mixture.left_out import LeftOut, learnt_and_left_out


class Guarded(CountingLearner):
    paused = False

    def guards(self) -> dict[str, GuardState]:
        state = GuardState(paused=self.paused, observed=1.25, expected=40.0)
        return {"stream": state, "mixture+head": state}


def test_each_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    learner = Guarded(1)
    alarm = GuardAlarm(learner)
    with caplog.at_level(logging.INFO):
        for learner.paused in (False, True, True, False, False):
            alarm.look("2026-03-01", 7)
    paused, resumed = caplog.messages
    assert "step 7: learning of mixture+head, stream from the stream is paused" in paused
    assert "1.2 were positive, weighted by age, and memory expected 40.0" in paused
    assert resumed == "window 2026-03-01, step 7: mixture+head, stream learns again"


def test_rows_left_out_are_counted_beside_those_learnt() -> None:
    found = learnt_and_left_out({"stream": [3, 4]}, {"stream": LeftOut([1, 0], [0, 2])})
    assert found == {"stream": [3, 4], "stream/masked": [1, 0], "stream/paused": [0, 2]}
    assert learnt_and_left_out({"stream": [3, 4]}, {}) == {"stream": [3, 4]}
