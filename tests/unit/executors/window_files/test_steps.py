"""Points over a window's steps: bounded, even, and never beyond the seal."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.there import there

from forebay.errors import DataError
from forebay.executors.model_line.judgement import Series
from forebay.executors.window_files.steps import (
    POINTS_MAX,
    STEPS_NAME,
    StepPoint,
    StepSeries,
    read_steps,
    shown_series,
)

NAMES = ["history", "clicks"]


def stepped(series: StepSeries, steps: int) -> None:
    for _ in range(steps):
        series.stepped(np.array([3, 1]), 60.0)


def written(folder: Path, steps: int, sealed: int = 0, *, final: bool = True) -> list[StepPoint]:
    """Points of a window after these steps, which go on from a seal at another one."""
    series = StepSeries(folder, NAMES)
    if sealed:
        series.restore(sealed, np.array([3 * sealed, sealed]))
    stepped(series, steps)
    series.write({}, final=final)
    return read_steps(folder / STEPS_NAME)


def test_the_last_step_says_which_times_rows_had(tmp_path: Path) -> None:
    series = StepSeries(tmp_path, NAMES)
    stepped(series, 3)
    series.write({"clicks": (1, 2)}, final=False)
    assert [point.times for point in read_steps(tmp_path / STEPS_NAME)] == [{}, {}, {}]
    series.write({"clicks": (1, 5)}, final=True)
    points = read_steps(tmp_path / STEPS_NAME)
    assert [point.times for point in points] == [{}, {}, {"clicks": (1, 5)}]


@pytest.mark.parametrize(
    ("steps", "shown"), [(599, 599), (600, 300), (601, 301), (1199, 600), (5_003, 313)]
)
def test_a_long_window_is_thinned_evenly_to_its_end(tmp_path: Path, steps: int, shown: int) -> None:
    points = written(tmp_path, steps)
    assert (len(points), points[-1].step) == (shown, steps)
    assert points[-1].rows == {"history": 3 * steps, "clicks": steps}
    assert len(set(np.diff([point.step for point in points[:-1]]).tolist())) == 1


def test_points_beyond_the_seal_are_dropped_and_counts_go_on_from_it(tmp_path: Path) -> None:
    written(tmp_path, 7, final=False)  # and the process ends before the seal at step 7 is there
    points = written(tmp_path, 2, sealed=4)
    assert [point.step for point in points] == [1, 2, 3, 4, 5, 6]
    assert [point.rows["clicks"] for point in points] == [1, 2, 3, 4, 5, 6]
    assert sorted(point.seconds for point in points) == [point.seconds for point in points]


def test_a_thinned_series_stays_thin_after_a_restart(tmp_path: Path) -> None:
    written(tmp_path, 2 * POINTS_MAX, final=False)
    points = written(tmp_path, 10, sealed=2 * POINTS_MAX)
    assert len(points) <= POINTS_MAX
    assert points[-1].step == 2 * POINTS_MAX + 10
    assert len(set(np.diff([point.step for point in points[:-1]]).tolist())) == 1


def test_a_window_without_rows_has_an_empty_series(tmp_path: Path) -> None:
    StepSeries(tmp_path, NAMES).write({}, final=True)
    assert ((tmp_path / STEPS_NAME).read_text(), read_steps(tmp_path / STEPS_NAME)) == ("", [])
    assert read_steps(tmp_path / "nowhere") == []


def test_time_goes_on_from_the_last_point_of_the_seal(tmp_path: Path) -> None:
    (point,) = written(tmp_path, 1, final=False)
    assert point.seconds < 1
    spent = [point.model_copy(update={"step": n, "seconds": 10.0 * n}) for n in (1, 2, 3)]
    (tmp_path / STEPS_NAME).write_text("".join(f"{each.model_dump_json()}\n" for each in spent))
    assert 20 <= written(tmp_path, 1, sealed=2, final=False)[-1].seconds < 25


@pytest.mark.parametrize("content", [b"\0" * 9, b'{"step": 1', b"\xff\n"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / STEPS_NAME
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"^{path} is damaged: move it away"):
        StepSeries(tmp_path, NAMES)


def test_losses_are_summed_by_paradigm_and_feed_and_continue_from_the_seal(tmp_path: Path) -> None:
    series = StepSeries(tmp_path, NAMES)
    for feed in ("batch", "stream", "batch"):
        series.lost({"mixture": 0.5}, "batch" if feed == "batch" else "stream")
        series.stepped(np.array([3, 1]), 60.0)
    series.write({}, final=False)
    again = StepSeries(tmp_path, NAMES)
    again.restore(2, np.array([6, 2]))
    again.lost({"mixture": 0.25, "stream": 1.0}, "stream")
    again.stepped(np.array([3, 1]), 60.0)
    again.write({}, final=True)
    *_, last = read_steps(tmp_path / STEPS_NAME)
    assert last.losses == {
        "mixture batch": (0.5, 1),
        "mixture stream": (0.75, 2),
        "stream stream": (1.0, 1),
    }


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
