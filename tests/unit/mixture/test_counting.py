"""The counting learner, and what is told of a guard: when it paused, and what was left out."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from support.learning import minibatch

from forebay.errors import ConfigError
from forebay.mixture.counting import CountingLearner
from forebay.mixture.guard_alarm import GuardAlarm
from forebay.mixture.label_guard import GuardState
from forebay.mixture.left_out import LeftOut, learnt_and_left_out
from forebay.mixture.row_sums import RowSums


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def test_sums_wrap_like_int64_and_survive_saving_and_export(tmp_path: Path) -> None:
    learner = CountingLearner(2)
    assert learner.seen() == [RowSums(rows=0, sum=0, sum_of_squares=0)] * 2 == [RowSums()] * 2
    batches = [minibatch("batch", seed) for seed in range(5)]
    for batch in batches:
        assert (learner.score(batch).shape, learner.learn(batch)) == ((64, 0), {})
    assert (learner.columns, learner.left_out(), learner.guards()) == ((), {}, {})
    for index, sums in enumerate(learner.seen()):
        ids = np.concatenate([b.row_ids[b.sources == index] for b in batches]).tolist()
        assert sums.rows == len(ids)
        assert sums.sum == wrapped(sum(ids))
        assert sums.sum_of_squares == wrapped(sum(i * i for i in ids))
    learner.save(tmp_path)
    again = CountingLearner(2)
    again.load(tmp_path)
    assert again.seen() == learner.seen()
    learner = CountingLearner(2)
    learner.learn(minibatch("stream", 1))
    learner.export(tmp_path)
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert (counts["steps"], sum(sums["rows"] for sums in counts["seen"])) == (1, 64)
    with pytest.raises(ConfigError, match="2 sources, but the pipeline has 3"):
        CountingLearner(3).load(tmp_path)


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
