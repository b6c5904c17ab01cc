"""Which links may judge a window, and how their models are loaded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from support.links import window_of
from support.minibatches import labelled
from support.model_lines import keep_checkpoint, record_link, replace_link
from support.stages import pipeline
from support.there import there

from forebay.errors import DataError
from forebay.executors.judging.judge import JudgingLink
from forebay.executors.judging.judges import LinkScorers, judging_links
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.retention.rule import WindowsKept
from forebay.system.instants import to_us

HOURS = [f"2026-03-01T{hour:02d}" for hour in range(8)]
STREAMS = {"a": {"sources": ["a"], "offset": "3h"}}
HOURLY = pipeline(("a",), dataset={"window": "1h", "streams": STREAMS}).dataset


@pytest.fixture
def chain(chain: ModelChain) -> ModelChain:
    for before, key in zip([None, *HOURS], HOURS[:6], strict=False):
        keep_checkpoint(chain, record_link(chain, key, {"a": 1}, parent=before))
    record_link(chain, HOURS[3], {"a": 1}, parent=HOURS[2], generation=2)
    return chain


def test_links_reach_back_to_the_model_of_the_oldest_row(chain: ModelChain) -> None:
    """Hour 6 reads rows of hour 3: its first ones are for the link that ended as hour 3 began."""
    found = judging_links(chain, HOURLY, window_of(HOURS[6]), chain.newest(HOURS[5]))
    names = [Parent(window=HOURS[hour], generation=2 if hour == 3 else 1) for hour in range(1, 6)]
    assert [one.name for one in found] == names
    assert found == [JudgingLink(to_us(window_of(one.name.window).end), one.name) for one in found]
    assert judging_links(chain, HOURLY, window_of(HOURS[0]), None) == []


def test_a_reprocess_is_judged_by_links_before_it_alone(chain: ModelChain) -> None:
    found = judging_links(chain, HOURLY, window_of(HOURS[2]), chain.newest(HOURS[1]))
    assert [one.name.window for one in found] == HOURS[:2]


class _Learner:
    def __init__(self) -> None:
        self.loaded: list[Parent] = []

    def score(self, minibatch: Any) -> Any:
        return np.full((len(minibatch), 1), len(self.loaded), np.float32)


def scorers(chain: ModelChain, made: list[_Learner], *, damaged: bool = False) -> LinkScorers:
    def make() -> Any:
        made.append(_Learner())
        return made[-1]

    def load(learner: Any, link: Link) -> None:
        if damaged:
            raise DataError("damaged")
        learner.loaded.append(link.name)

    return LinkScorers(chain, make, load)


def test_one_learner_is_made_and_loaded_where_it_has_to_be(chain: ModelChain) -> None:
    made: list[_Learner] = []
    one = scorers(chain, made)
    assert made == []
    for hour in (1, 1, 2, 2, 1):
        scorer = there(one.scorer(Parent(window=HOURS[hour], generation=1)))
        assert scorer(labelled("batch", [1], [0])).shape == (1, 1)
    (learner,) = made
    assert [name.window for name in learner.loaded] == [HOURS[1], HOURS[2], HOURS[1]]


def test_a_link_without_a_checkpoint_judges_nothing(chain: ModelChain) -> None:
    made: list[_Learner] = []
    one = scorers(chain, made)
    assert one.scorer(Parent(window=HOURS[3], generation=2)) is None
    assert one.scorer(Parent(window=HOURS[7], generation=1)) is None
    assert made == []


def test_a_checkpoint_that_is_kept_and_damaged_is_red(chain: ModelChain) -> None:
    name = Parent(window=HOURS[1], generation=1)
    with pytest.raises(DataError):
        scorers(chain, [], damaged=True).scorer(name)


def test_a_checkpoint_that_goes_while_it_is_read_is_gone(chain: ModelChain) -> None:
    link = there(chain.newest(HOURS[1]))

    def load(_learner: Any, found: Link) -> None:
        replace_link(chain, found.model_copy(update={"files": {}}))
        raise DataError("it is not there")

    assert LinkScorers(chain, _Learner, load).scorer(link.name) is None


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ({}, 25),
        ({"windows_kept": 100}, 100),
        ({"checkpoint": {"windows_kept": 3}}, 3),
        ({"judge_rows_max": 0}, 7),
    ],
)
def test_checkpoints_stay_as_long_as_they_judge(declared: dict[str, Any], kept: int) -> None:
    dataset = {"window": "1h", "streams": {"a": {"sources": ["a"], "offset": "24h"}}}
    job = {"windows_kept": 7} | declared
    spec = pipeline(("a",), dataset=dataset, job=job, model={"kind": "towers"})
    assert spec.dataset.label_horizon * timedelta(hours=1) == timedelta(hours=25)
    assert WindowsKept.of(spec).checkpoints == kept


def test_events_that_are_filed_later_are_judged_too(chain: ModelChain) -> None:
    """Rows of hour 6 may be of events five hours older, by `label_join`."""
    dataset = {"window": "1h", "streams": STREAMS, "label_join": "5h"}
    later = pipeline(("a",), dataset=dataset).dataset
    found = judging_links(chain, later, window_of(HOURS[6]), chain.newest(HOURS[5]))
    assert [one.name.window for one in found] == HOURS[:6]
