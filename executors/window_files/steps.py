"""How a window's training went, as points over its steps: `steps.jsonl`.

Each line is a JSON object, in order of steps:

    {"step": 12, "seconds": 3.25, "rows": {"history": 2816, "clicks": 256}, "lag_seconds": 64800.0,
     "losses": {"stream batch": [0.7, 11]}}

- step: minibatches of this window up to here, from 1; the window's last step is always included.
- seconds: of training this window up to here; a restarted trainer continues the count.
- rows: rows of this window trained up to here, by source; every source is named.
- lag_seconds: time of data in the window that was not trained yet; 0 at the end.
- times: first and last time of the window's rows by source, in microseconds since 1970 UTC, by
  which they are cut; only in the line of the window's last step, and for sources that know it.
- losses: by paradigm and feed, the sum of the losses of its steps up to here and their number.

There are at most `POINTS_MAX` lines, equally spaced except for the last. The file is replaced at
every seal, so it covers the same steps as the checkpoint. Use `read_steps`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from forebay.config.specs.datasets import Feed
from forebay.errors import DataError
from forebay.executors.model_line.judgement import Series
from forebay.system.files.durable import write_atomically
from forebay.system.message import Message

STEPS_NAME = "steps.jsonl"
POINTS_MAX = 600
Counts = npt.NDArray[np.int64]


class StepPoint(Message):
    step: int
    seconds: float
    rows: dict[str, int] = Field(default_factory=dict)
    lag_seconds: float = 0.0
    losses: dict[str, tuple[float, int]] = Field(default_factory=dict)
    times: dict[str, tuple[int, int]] = Field(default_factory=dict)


def read_steps(path: Path) -> list[StepPoint]:
    """The points in such a file; none where there is no file.

    Raises:
        DataError: when the file holds something else.
    """
    if not path.is_file():
        return []
    try:
        return [StepPoint.model_validate_json(line) for line in path.read_bytes().splitlines()]
    except ValidationError as error:
        raise DataError(
            f"{path} is damaged: move it away and run again; its record of the window's "
            "training so far is lost"
        ) from error


class StepSeries:
    """Collects points while a window is trained; a step costs one addition of a few numbers."""

    def __init__(self, model_folder: Path, names: Sequence[str]) -> None:
        self._folder = model_folder
        self._names = list(names)
        self.restore(0, np.zeros(len(self._names), np.int64))

    def restore(self, step: int, rows: Counts) -> None:
        """Continue from a seal at `step`, where `rows` of each source are trained."""
        self._points = [
            point for point in read_steps(self._folder / STEPS_NAME) if point.step <= step
        ]
        # Points are at multiples of the stride, so the first one is the stride.
        self._stride = self._points[0].step if self._points else 1
        self._step, self._rows, self._lag_seconds = step, rows.copy(), 0.0
        spent = self._points[-1].seconds if self._points else 0.0
        self._began = time.monotonic() - spent
        # Steps after the last point are missing from both sum and number, so means stay correct.
        self._losses = dict(self._points[-1].losses) if self._points else {}

    def lost(self, losses: Mapping[str, float], feed: Feed) -> None:
        """The losses of the next minibatch for the paradigms that were trained on it."""
        for name, loss in losses.items():
            total, steps = self._losses.get(f"{name} {feed}", (0.0, 0))
            self._losses[f"{name} {feed}"] = (total + loss, steps + 1)

    def stepped(self, counts: Counts, lag_seconds: float) -> None:
        self._step += 1
        self._rows += counts
        self._lag_seconds = lag_seconds
        if self._step % self._stride == 0:
            self._points.append(self._point())
            # One place is kept for the window's last step.
            if len(self._points) == POINTS_MAX:
                self._stride *= 2
                self._points = [p for p in self._points if p.step % self._stride == 0]

    def write(self, times: Mapping[str, tuple[int, int]], *, final: bool) -> None:
        """Replace the file, before the seal that it belongs to. times: see `StepPoint`."""
        points = list(self._points)
        if final and self._step:
            last = self._point().model_copy(update={"lag_seconds": 0.0, "times": dict(times)})
            points = [*(p for p in points if p.step < self._step), last]
        lines = "".join(f"{point.model_dump_json()}\n" for point in points)
        write_atomically(self._folder / STEPS_NAME, lines)

    def _point(self) -> StepPoint:
        return StepPoint(
            step=self._step,
            seconds=round(time.monotonic() - self._began, 3),
            rows=dict(zip(self._names, self._rows.tolist(), strict=True)),
            lag_seconds=self._lag_seconds,
            losses={
                name: (round(total, 4), steps) for name, (total, steps) in self._losses.items()
            },
        )


SHOWN_MAX = 200


def shown_series(path: Path, points_max: int = SHOWN_MAX) -> Series | None:
    """What the trainer of a window recorded, first and last point included; None if nothing."""
    kept = _spread(read_steps(path), points_max)
    if not kept:
        return None
    return Series(
        steps=[one.step for one in kept],
        seconds=[round(one.seconds, 2) for one in kept],
        lag_seconds=[round(one.lag_seconds) for one in kept],
        rows={name: [one.rows[name] for one in kept] for name in kept[-1].rows},
        losses={name: _means(kept, name) for name in kept[-1].losses},
    )


def _means(points: Sequence[StepPoint], name: str) -> list[float | None]:
    found: list[float | None] = []
    total, steps = 0.0, 0
    for point in points:
        total_now, steps_now = point.losses.get(name, (0.0, 0))
        more = steps_now - steps
        found.append(round((total_now - total) / more, 5) if more > 0 else None)
        total, steps = total_now, steps_now
    return found


def _spread(points: Sequence[StepPoint], count: int) -> list[StepPoint]:
    if len(points) <= count:
        return list(points)
    last = len(points) - 1
    return [points[round(number * last / (count - 1))] for number in range(count)]
