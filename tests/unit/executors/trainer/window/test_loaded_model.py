"""A learner is loaded if it is at another position, and only then."""

from __future__ import annotations

from typing import Any

import pytest
from support.model_lines import keep_checkpoint, record_link

from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.trainer.window.parts import LoadedModel
from forebay.mixture.counting import CountingLearner


class Loads:
    """In place of the archive: which windows were loaded."""

    def __init__(self) -> None:
        self.windows: list[str] = []

    def load(self, learner: object, link: Link) -> None:
        del learner
        self.windows.append(link.window)


def loaded_model(chain: ModelChain, loads: Loads, fingerprint: str = "same") -> LoadedModel:
    learner: Any = CountingLearner(1)
    archive: Any = loads
    return LoadedModel(learner, chain, archive, fingerprint, 2)


def test_what_ended_here_is_loaded_after_steps_of_another_window_only(chain: ModelChain) -> None:
    loads = Loads()
    model = loaded_model(chain, loads)
    link = keep_checkpoint(chain, record_link(chain, "2026-03-01", {"a": 3}))
    model.moves()
    model.ended(link)
    model.bring_to(link)
    assert loads.windows == []
    model.moves()
    model.bring_to_parent(link)
    model.bring_to(link)
    assert loads.windows == ["2026-03-01"], "once"


def test_a_line_begins_once(chain: ModelChain) -> None:
    model = loaded_model(chain, Loads())
    model.bring_to_parent(None)
    model.ended(record_link(chain, "2026-03-01", {"a": 3}))
    with pytest.raises(InfrastructureError, match="without a parent"):
        model.bring_to_parent(None)


def test_the_checkpoint_of_another_model_is_refused(chain: ModelChain) -> None:
    loads, link = Loads(), keep_checkpoint(chain, record_link(chain, "2026-03-01", {"a": 3}))
    with pytest.raises(ForebayError):
        loaded_model(chain, loads, "another").bring_to_parent(link)
    assert loads.windows == []
