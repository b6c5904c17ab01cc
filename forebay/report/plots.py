"""Plots by window, AUC, rows and seconds by phase; and over steps: rows, losses, data left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.executors.evaluation.run_summary import Summary
from forebay.executors.model_line.judgement import Judgement, Series
from forebay.mixture.metrics.estimate import Estimate
from forebay.report.drawing import (
    FAINT,
    Plot,
    colour,
    filling,
    label_every,
    legend_above,
    line,
    listed,
    mark,
    plot,
    whole_numbers,
)
from forebay.report.text import estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CHANCE = 0.5


def auc_plot(summary: Summary) -> Plot | None:
    """AUC on complete labels by window and paradigm with intervals; None if there is none."""
    by_name = {
        name: [_whole_auc(window, name) for window in summary.windows] for name in summary.paradigms
    }
    drawn = {name: estimates for name, estimates in by_name.items() if any(estimates)}
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        draw_aucs(axes, summary, drawn, "AUC, complete labels")
        legend_above(axes, len(drawn))

    pooled = summary.pooled.paradigms
    said = [f"{n} {estimate_text(pooled[n].auc_true if n in pooled else None)}" for n in drawn]
    return plot(draw, f"AUC on complete labels of {summary.period}; pooled: {listed(said)}")


def draw_estimates(
    axes: Axes, estimates: Sequence[Estimate | None], index: int, beside: int, name: str
) -> None:
    """Figures by window with their intervals. index: which of the `beside` series this one is."""
    points = [(place, one) for place, one in enumerate(estimates) if one is not None]
    shift = (index - (beside - 1) / 2) * 0.5 / beside
    reach = (
        [max(0.0, one.value - one.low) for _, one in points],
        [max(0.0, one.high - one.value) for _, one in points],
    )
    axes.errorbar(
        [place + shift for place, _ in points],
        [one.value for _, one in points],
        reach,
        fmt=mark(index),
        ms=4 if len(estimates) <= 30 else 2,
        lw=1.2,
        color=colour(index),
        label=name,
    )


def draw_aucs(
    axes: Axes, summary: Summary, drawn: Mapping[str, Sequence[Estimate | None]], what: str
) -> None:
    """AUCs by window. Chance, if the axis reaches it: above it, far figures would look alike."""
    for index, (name, estimates) in enumerate(drawn.items()):
        draw_estimates(axes, estimates, index, len(drawn), name)
    low, high = axes.get_ylim()
    if low < _CHANCE < high:
        axes.axhline(_CHANCE, color=FAINT, lw=0.8, ls="--")
    axes.set_ylabel(what)
    window_axis(axes, summary)


def rows_plot(summary: Summary) -> Plot | None:
    if not summary.windows:
        return None

    def draw(axes: Axes) -> None:
        below = [0] * len(summary.windows)
        for index, name in enumerate(summary.sources):
            rows = _trained(summary, name)
            bars = axes.bar(range(len(rows)), rows, 0.7, below, color=colour(index), label=name)
            for bar in bars:
                bar.set(hatch=filling(index), edgecolor=FAINT, linewidth=0)
            below = [low + more for low, more in zip(below, rows, strict=True)]
        axes.set_ylabel("rows trained")
        window_axis(axes, summary)
        axes.set_ylim(0, 1.05 * max(1, *below))
        whole_numbers(axes)
        legend_above(axes, len(summary.sources))

    counts = {name: sum(_trained(summary, name)) for name in summary.sources}
    total = max(1, sum(counts.values()))
    said = [f"{name} {rows:,} ({rows / total:.0%})" for name, rows in counts.items()]
    return plot(draw, f"Rows trained in {summary.period} by source: {listed(said)}")


def _trained(summary: Summary, source: str) -> list[int]:
    """Rows of a source by window."""
    own = [window.sources.get(source) for window in summary.windows]
    return [one.trained_rows if one else 0 for one in own]


def phases_plot(summary: Summary) -> Plot | None:
    """Seconds by phase; None if the summary has none."""
    phases = summary.phases_seconds
    if not phases:
        return None

    def draw(axes: Axes) -> None:
        names = list(phases)
        seconds = list(phases.values())
        bars = axes.barh(names, seconds, color=colour(0), height=0.6)
        axes.bar_label(bars, labels=[f" {one:.1f} s" for one in seconds])
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.12)

    said = [f"{name} {seconds:.1f} s" for name, seconds in phases.items()]
    height = 0.6 + 0.32 * len(phases)
    return plot(draw, f"Seconds by phase: {listed(said, most=20)}", height)


def _whole_auc(window: Judgement, name: str) -> Estimate | None:
    """AUC on complete labels; None while some are still missing."""
    found = window.metrics.get(name)
    return None if found is None or found.words_true else found.true


def window_axis(axes: Axes, summary: Summary) -> None:
    keys = [window.window for window in summary.windows]
    places = range(0, len(keys), label_every(len(keys)))
    axes.set_xticks(list(places), [keys[place] for place in places], rotation=35, ha="right")
    axes.set_xlim(-0.6, len(keys) - 0.4)


_HOUR_SECONDS = 3600.0


@dataclass(frozen=True)
class _Placed:
    """A window's series, with the total steps and rows of all windows before it."""

    window: str
    series: Series
    step: int
    rows: dict[str, int]


def step_rows_plot(summary: Summary) -> Plot | None:
    """Rows of each source over the steps of all windows; None if no trainer recorded them."""
    placed = _placed(summary)
    if not placed:
        return None

    def draw(axes: Axes) -> None:
        for index, name in enumerate(summary.sources):
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
        legend_above(axes, len(summary.sources))

    last = placed[-1]
    ends = {n: last.rows.get(n, 0) + last.series.rows.get(n, [0])[-1] for n in summary.sources}
    said = listed(f"{name} {rows:,}" for name, rows in ends.items())
    return plot(draw, f"Rows trained over {_steps_of(placed)}: {said}")


def loss_plot(summary: Summary) -> Plot | None:
    """Mean loss between two points, by paradigm and feed; None if no trainer recorded them."""
    placed = [one for one in _placed(summary) if one.series.losses]
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


def lag_plot(summary: Summary) -> Plot | None:
    """Hours of the open window's data left to train on; None if no trainer recorded them."""
    placed = _placed(summary)
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


def _placed(summary: Summary) -> list[_Placed]:
    """The windows that have a series, in order, without the warm start, whose scale differs."""
    found: list[_Placed] = []
    step, rows = 0, dict.fromkeys(summary.sources, 0)
    for window in summary.windows:
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
