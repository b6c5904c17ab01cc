"""A window's steps, thinned for plots."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from support.there import there

from forebay.executors.model_line.judgement import Series
from forebay.executors.window_files.steps import STEPS_NAME, StepPoint, shown_series


def write(folder: Path, steps: int) -> None:
    points = [
        StepPoint(
            step=n,
            seconds=n / 3,
            rows={"a": 10 * n, "b": n},
            lag_seconds=steps - n,
            losses={"stream batch": (0.5 * (n // 2), n // 2)},
        )
        for n in range(1, steps + 1)
    ]
    (folder / STEPS_NAME).write_text("".join(f"{point.model_dump_json()}\n" for point in points))


def test_a_few_steps_stay_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, 3)
    assert shown_series(tmp_path / STEPS_NAME) == Series(
        steps=[1, 2, 3],
        seconds=[0.33, 0.67, 1.0],
        lag_seconds=[2, 1, 0],
        rows={"a": [10, 20, 30], "b": [1, 2, 3]},
        losses={"stream batch": [None, 0.5, None]},
    )


def test_many_steps_are_thinned_evenly_between_the_first_and_the_last(tmp_path: Path) -> None:
    write(tmp_path, 570)
    found = there(shown_series(tmp_path / STEPS_NAME, points_max=200))
    steps = found.steps
    assert len(steps) == len(found.rows["b"]) == 200
    assert (steps[0], steps[-1]) == (1, 570)
    assert {after - before for before, after in pairwise(steps)} <= {2, 3}
    assert found.rows["b"] == steps


def test_a_model_without_steps_has_no_series(tmp_path: Path) -> None:
    assert shown_series(tmp_path / STEPS_NAME) is None
