"""Frames of several windows in a row, from a scripted reader."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.minibatches import labelled
from support.projects import ads_pipeline

from forebay.config.specs.pipelines import PipelineSpec
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import DataError, InfrastructureError, UsageError
from forebay.executors.reading.opening import Opened, Windows
from forebay.executors.reading.rows import FrameReading, ReadPosition
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.remote_reader import SILENCE_SECONDS

PIPELINE = PipelineSpec.model_validate({"name": "ads", **ads_pipeline()})


def plan(day: int, data: str = "") -> WindowPlan:
    """A window of no sources; the fingerprint says what its data is."""
    start = datetime(2026, 3, day, tzinfo=UTC)
    values = {"window": f"2026-03-{day:02d}", "generation": 1, "sources": {}, "fingerprint": data}
    return WindowPlan.model_validate({**values, "start": start, "end": start + timedelta(days=1)})


def frame(rows: int, progress: Mapping[str, TaskProgress] | None = None) -> Frame:
    minibatch = labelled("batch", range(rows), [0.0] * rows) if rows else None
    return Frame(minibatch, dict(progress or {}), "data-0", 1, rows, 0)


@dataclass
class ScriptedReader:
    """Windows whose frames are written down; None is a look in which nothing came."""

    script: dict[str, list[Frame | None]]
    began: list[tuple[str, Mapping[str, TaskProgress]]] = field(default_factory=list)
    done: list[Frame] = field(default_factory=list)
    at: dict[str, TaskProgress] = field(default_factory=dict)
    orders: tuple[int, int] = (0, 0)

    def begin(self, window: str, _generation: int, sealed: Mapping[str, Any], _step: int) -> None:
        self.began.append((window, sealed))
        self.at = dict(sealed)
        self.left = deque(self.script[window])

    def next(self, _seconds: float) -> Frame | None:
        return self.left.popleft() if self.left else None

    def used(self, frame: Frame) -> None:
        self.done.append(frame)
        self.at.update(frame.progress)

    def finished(self) -> bool:
        return not self.left

    def progress(self) -> dict[str, TaskProgress]:
        return dict(self.at)


def reading(
    reader: ScriptedReader, position: ReadPosition | None = None, check: Any = lambda: None
) -> FrameReading:
    plans = [plan(int(key[-2:])) for key in reader.script]
    opened = Opened(plans, cast("Any", SimpleNamespace(check=check)), cast("Any", reader))
    return FrameReading(Windows(cast("Any", None), PIPELINE, []), opened, position)


def at(row: int, dead: int = 0) -> TaskProgress:
    return TaskProgress(position=Position(0, row), rows_read=row, dead_rows=dead)


def test_windows_follow_each_other_and_every_frame_is_used_once() -> None:
    one, two, three, moved = frame(3), frame(2), frame(4), frame(0)
    reader = ScriptedReader(
        {"2026-03-01": [one, None, moved, two], "2026-03-02": [], "2026-03-03": [three]}
    )
    made = reading(reader)
    found = []
    while (each := made.next()) is not None:
        found.append((made.plan.window, each))
        assert each not in reader.done, "it is used when the next one is asked for"
    assert found == [("2026-03-01", one), ("2026-03-01", two), ("2026-03-03", three)]
    assert [key for key, _ in reader.began] == list(reader.script)
    assert reader.done == [one, moved, two, three]
    assert made.over
    assert made.next() is None


def test_a_position_counts_what_was_handed_out_and_is_gone_on_from() -> None:
    frames: list[Frame | None] = [frame(3, {"a/0": at(3)}), frame(2, {"a/0": at(5)})]
    reader = ScriptedReader({"2026-03-01": [], "2026-03-02": frames})
    made = reading(reader)
    made.next()
    before = made.position()
    assert (before.window, before.progress) == ("2026-03-02", {"a/0": at(3)})
    assert made.position() == before
    again = ScriptedReader(dict(reader.script))
    reading(again, before)
    assert again.began == [("2026-03-02", {"a/0": at(3)})]


def test_dead_rows_are_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    frames: list[Frame | None] = [
        frame(3, {"a/0": at(3, 2), "b/0": at(1)}),
        frame(1, {"a/1": at(1, 1)}),
    ]
    made = reading(ScriptedReader({"2026-03-01": frames}))
    while made.next() is not None:
        pass
    assert made.dead_rows == {"a": 3}
    assert "window 2026-03-01: 3 rows of source a could not be read" in caplog.text


def test_silence_ends() -> None:
    made = reading(ScriptedReader({"2026-03-01": [None] * 10_000}))
    with pytest.raises(InfrastructureError, match="window 2026-03-01: no rows came for"):
        made.next()
    assert SILENCE_SECONDS < 10_000


AT = ReadPosition(
    pipeline="ads",
    window="2026-03-02",
    plan="two",
    progress={"clicks/0": TaskProgress(position=Position(1, 7), rows_read=40)},
)


PLANS = [plan(1, "one"), plan(2, "two"), plan(3, "three")]


def test_the_text_of_a_position_is_read_again() -> None:
    assert ReadPosition.of_text(AT.model_dump_json(), "ads") == AT
    with pytest.raises(UsageError, match="of pipeline 'ads', not 'clips'"):
        ReadPosition.of_text(AT.model_dump_json(), "clips")


@pytest.mark.parametrize(
    "text", ["", "{}", "null", '{"pipeline": "ads"}', AT.model_dump_json()[1:]]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"does not come from `position\(\)`"):
        ReadPosition.of_text(text, "ads")


def test_the_rest_of_a_range_begins_with_its_window_and_the_same_data() -> None:
    assert [each.window for each in AT.rest_of(PLANS)] == ["2026-03-02", "2026-03-03"]
    with pytest.raises(UsageError, match="in window 2026-03-02, but the windows to read are 2026"):
        AT.rest_of(PLANS[2:])
    with pytest.raises(DataError, match="window 2026-03-02 has changed since"):
        AT.rest_of([plan(2, "another")])
