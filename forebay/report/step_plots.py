"""Plots over steps: rows by source, losses, and how much of a window's data was left to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.report.drawing import (
    FAINT,
    Plot,
    colour,
    label_every,
    legend_above,
    line,
    listed,
    plot,
    whole_numbers,
)
from forebay.report.facts import Facts, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True)
class _Placed:
    """A window's series, with the total steps and rows of all windows before it."""

    window: str
    series: Series
    step: int
    rows: dict[str, int]


def step_rows_plot(facts: Facts) -> Plot | None:
    """Rows of each source over the steps of all windows; None if no trainer recorded them."""
    placed = _placed(facts)
    if not placed:
        return None

    def draw(axes: Axes) -> None:
        for index, name in enumerate(facts.sources):
            steps, rows = [0], [0]
            for one in placed:
                noted = one.series.rows.get(name, [0] * len(one.series.steps))
                steps += [one.step + step for step in one.series.steps]
                rows += [one.rows.get(name, 0) + count for count in noted]
            axes.plot(steps, rows, color=colour(index), ls=line(index), lw=1.4, label=name)
        axes.set_ylabel("rows trained, all windows")
        axes.set_ylim(bottom=0)
        whole_numbers(axes)
        _step_axis(axes, placed)
        legend_above(axes, len(facts.sources))

    last = placed[-1]
    ends = {
        name: last.rows.get(name, 0) + last.series.rows.get(name, [0])[-1] for name in facts.sources
    }
    said = listed(f"{name} {rows:,}" for name, rows in ends.items())
    return plot(draw, f"Rows trained over {_steps_of(placed)}: {said}")


def loss_plot(facts: Facts) -> Plot | None:
    """Mean loss between two points, by paradigm and feed; None if no trainer recorded them."""
    placed = [one for one in _placed(facts) if one.series.losses]
    if not placed:
        return None
    names = list(dict.fromkeys(name for one in placed for name in one.series.losses))
    lines = {name: _loss_line(placed, name) for name in names}

    def draw(axes: Axes) -> None:
        for index, (name, (steps, losses)) in enumerate(lines.items()):
            axes.plot(steps, losses, color=colour(index), ls=line(index), lw=1.2, label=name)
        axes.set_ylabel("loss (log loss, nats)")
        _step_axis(axes, placed)
        legend_above(axes, min(4, len(names)))

    said = listed(f"{name} {losses[-1]:.4f}" for name, (_, losses) in lines.items() if losses)
    return plot(draw, f"Training loss over {_steps_of(placed)}; at the end: {said}")


def _loss_line(placed: list[_Placed], name: str) -> tuple[list[int], list[float]]:
    steps, losses = [], []
    for one in placed:
        noted = one.series.losses.get(name, [])
        for step, loss in zip(one.series.steps, noted, strict=False):
            if loss is not None:
                steps.append(one.step + step)
                losses.append(loss)
    return steps, losses


def _steps_of(placed: list[_Placed]) -> str:
    return f"{placed[-1].step + placed[-1].series.steps[-1]:,} steps"


def lag_plot(facts: Facts) -> Plot | None:
    """Hours of the open window's data left to train on; None if no trainer recorded them."""
    placed = _placed(facts)
    if not placed:
        return None
    longest = max(seconds for one in placed for seconds in one.series.lag_seconds) / _HOUR_SECONDS

    def draw(axes: Axes) -> None:
        for one in placed:
            steps = [one.step + step for step in one.series.steps]
            lag = [seconds / _HOUR_SECONDS for seconds in one.series.lag_seconds]
            axes.plot(steps, lag, color=colour(0), lw=1.2, marker=".", ms=3)
        axes.set_ylabel("hours of data left")
        axes.set_ylim(0, 1.05 * max(1.0, longest))
        _step_axis(axes, placed)

    alt = f"Hours of data left to train on, over {_steps_of(placed)}: at most {longest:.1f}"
    return plot(draw, alt, height=2.4)


def _placed(facts: Facts) -> list[_Placed]:
    """The windows that have a series, in order, without the warm start, whose scale differs."""
    found: list[_Placed] = []
    step, rows = 0, dict.fromkeys(facts.sources, 0)
    for window in facts.windows:
        if window.series is None:
            continue
        found.append(_Placed(window.window, window.series, step, dict(rows)))
        step += window.series.steps[-1]
        for name, noted in window.series.rows.items():
            rows[name] = rows.get(name, 0) + noted[-1]
    return found


def _step_axis(axes: Axes, placed: list[_Placed]) -> None:
    end = placed[-1].step + placed[-1].series.steps[-1]
    named = placed[:: label_every(len(placed))]
    axes.set_xticks(
        [one.step for one in named], [one.window for one in named], rotation=35, ha="right"
    )
    for one in placed[1:]:
        axes.axvline(one.step, color=FAINT, lw=0.6, zorder=0)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(0, max(1, end))
    axes.set_xlabel(f"steps ({end:,} in total); each window is named where it starts")
