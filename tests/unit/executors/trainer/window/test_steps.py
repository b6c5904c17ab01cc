"""What happens to a minibatch: scored before it is trained on, counted after, kept or not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.minibatches import labelled
from support.stages import memory_source, pipeline
from support.there import there

from forebay.errors import TrainingError
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.window.steps import WindowSteps
from forebay.executors.window_files.scores import ScoreWriter, Segments
from forebay.mixture.minibatch import Minibatch

NAMES = ("history", "clicks")
BATCH = labelled("batch", [1, 2, 3], [0, 1, 0])
STREAM = replace(labelled("stream", [4, 5], [0, 1]), sources=np.ones(2, np.int32))


@dataclass
class Trainer:
    """In place of everything that a step uses; `did` says in which order."""

    folder: Path
    streams: dict[str, Any]
    warm_start: bool = False
    joins: bool = False
    fails: bool = False
    did: list[str] = field(default_factory=list)
    window_step: int = 0
    paradigms: tuple[str, ...] = ("stream",)
    holds: list[bool] | None = None
    plan: Any = field(default_factory=lambda: SimpleNamespace(slice_seconds=0.0))

    def steps(self) -> WindowSteps:
        spec = pipeline(NAMES, dataset={"streams": self.streams})
        sources = {name: memory_source(name) for name in NAMES}
        join = SimpleNamespace(joined=self._joined, add=self.told)
        parts: Any = SimpleNamespace(
            pipeline=spec,
            sources=sources,
            names=list(NAMES),
            learner=self,
            join=join if self.joins else None,
            reader=SimpleNamespace(used=lambda _: self.did.append("used")),
            progress=SimpleNamespace(stepped=self._stepped, used=lambda *_: None),
        )
        return WindowSteps(parts)

    def use(self, *minibatches: Minibatch | None) -> Segments:
        steps, writer = self.steps(), ScoreWriter(self.folder, ["stream"])
        self.request = SimpleNamespace(
            key="2026-03-01", warm_start=self.warm_start, phase_at=lambda *_: "window"
        )
        self.counters = SimpleNamespace(add=lambda _, rows: self.did.append(f"{rows} counted"))
        self.series = SimpleNamespace(lost=self._lost, stepped=lambda *_: None)
        self.scores, self.judge, self.step = writer, None, 0
        self.letters = SimpleNamespace(append=lambda _: self.did.append("letters"))
        opened: Any = self
        for minibatch in minibatches:
            rows = 0 if minibatch is None else len(minibatch)
            steps.use(opened, Frame(minibatch, {}, "e", 1, rows, 0))
        writer.seal()
        return Segments("2026-03-01", self.folder)

    def set_phase(self, phase: str) -> None:
        self.phase = phase

    def score(self, minibatch: Minibatch) -> Any:
        self.did.append(f"{minibatch.feed} scored")
        return np.full((len(minibatch), 1), 0.5, np.float32)

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        if self.fails:
            raise TrainingError("the loss of stream is nan")
        self.did.append(f"{minibatch.feed} learnt")
        return {"stream": 0.7}

    def held(self) -> Any:
        return None if self.holds is None else np.array(self.holds)[:, np.newaxis]

    def _joined(self, minibatch: Minibatch) -> Minibatch:
        self.did.append("joined")
        return minibatch

    def told(self, minibatch: Minibatch) -> None:
        del minibatch
        self.did.append("told")

    def _lost(self, losses: dict[str, float], feed: str) -> None:
        assert (losses, feed in ("batch", "stream")) == ({"stream": 0.7}, True)

    def _stepped(self, counts: Any, hour: int, step: int) -> float:
        assert (hour, step) == (0, 0)
        self.did.append(f"{counts.tolist()} shown")
        return 0.0


BOTH = {
    "history": {"sources": ["history"], "feed": "batch"},
    "clicks": {"sources": ["clicks"], "feed": "stream"},
}
HISTORY = {name: {"sources": [name], "feed": "batch"} for name in NAMES}


def test_stream_rows_are_scored_before_they_are_learnt(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, BOTH)
    segments = trainer.use(BATCH, STREAM)
    assert trainer.did == [
        *("batch learnt", "3 counted", "[3, 0] shown", "letters", "used"),
        *("stream scored", "stream learnt", "2 counted", "[0, 2] shown", "letters", "used"),
    ]
    assert trainer.window_step == 2
    labels, scores = segments.labels(), segments.scores()
    assert there(labels).column("event_id").to_pylist() == [1, 2, 3]
    assert there(scores).column("event_id").to_pylist() == [4, 5]


def test_without_any_stream_batch_rows_are_scored(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, HISTORY)
    segments = trainer.use(BATCH)
    assert trainer.did[:2] == ["batch scored", "batch learnt"]
    assert there(segments.scores()).num_rows == 3


def test_batch_rows_ask_what_the_stream_said_before_them(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, BOTH, joins=True)
    trainer.use(STREAM, BATCH)
    assert [each for each in trainer.did if each in ("told", "joined", "batch learnt")] == [
        *("told", "joined", "batch learnt")
    ]


def test_a_warm_start_keeps_what_was_published_and_scores_nothing(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, BOTH, warm_start=True, joins=True)
    segments = trainer.use(STREAM, BATCH)
    assert "stream scored" not in trainer.did
    assert segments.scores() is None
    assert segments.labels() is None
    assert there(segments.published()).column("event_id").to_pylist() == [4, 5]


@pytest.mark.parametrize("warm_start", [False, True])
def test_what_the_guard_held_is_marked(tmp_path: Path, warm_start: bool) -> None:
    """It is learning that decides so, with the very rows: their copies are none for the join."""
    told: list[Any] = []
    trainer = Trainer(tmp_path, BOTH, warm_start=warm_start, joins=True, holds=[False, True])
    trainer.told = told.append
    assert there(trainer.use(STREAM).published()).column("held").to_pylist() == [False, True]
    (minibatch,) = told
    assert minibatch.held.tolist() == [False, True]


def test_frames_without_rows_move_positions_only(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, BOTH)
    trainer.use(None, labelled("batch", [], []))
    assert (trainer.did, trainer.window_step) == (["letters", "used"] * 2, 0)


def test_a_loss_that_is_not_finite_names_window_step_and_rows(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, BOTH, fails=True)
    with pytest.raises(TrainingError, match="step 1: the loss of stream is nan") as failed:
        trainer.use(STREAM)
    assert "window 2026-03-01" in str(failed.value)
    assert "2 of clicks" in str(failed.value)
    assert "of history" not in str(failed.value)
    assert "used" not in trainer.did
