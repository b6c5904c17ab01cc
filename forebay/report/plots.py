"""Plots by window: AUC with intervals, rows by source, seconds by phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.mixture.metrics.estimate import Estimate
from forebay.report.drawing import (
    FAINT,
    Plot,
    colour,
    filling,
    label_every,
    legend_above,
    listed,
    mark,
    plot,
    whole_numbers,
)
from forebay.report.facts import Facts, WindowFacts
from forebay.report.text import estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CHANCE = 0.5


def auc_plot(facts: Facts) -> Plot | None:
    """AUC on complete labels by window and paradigm with intervals; None if there is none."""
    by_name = {
        name: [_whole_auc(window, name) for window in facts.windows] for name in facts.paradigms
    }
    drawn = {name: estimates for name, estimates in by_name.items() if any(estimates)}
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        for index, (name, estimates) in enumerate(drawn.items()):
            draw_estimates(axes, estimates, index, len(drawn), name)
        chance_line(axes)
        axes.set_ylabel("AUC, complete labels")
        window_axis(axes, facts)
        legend_above(axes, len(drawn))

    pooled = {name: facts.pooled.get(name, {}).get("auc_true") for name in drawn}
    said = [f"{name} {estimate_text(one)}" for name, one in pooled.items()]
    return plot(draw, f"AUC on complete labels of {facts.period}; pooled: {listed(said)}")


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


def chance_line(axes: Axes) -> None:
    """AUC of chance, if the axis reaches it: figures far above it would look all alike with it."""
    low, high = axes.get_ylim()
    if low < _CHANCE < high:
        axes.axhline(_CHANCE, color=FAINT, lw=0.8, ls="--")


def rows_plot(facts: Facts) -> Plot | None:
    if not facts.windows:
        return None

    def draw(axes: Axes) -> None:
        below = [0] * len(facts.windows)
        for index, name in enumerate(facts.sources):
            rows = [window.source_rows.get(name, 0) for window in facts.windows]
            bars = axes.bar(range(len(rows)), rows, 0.7, below, color=colour(index), label=name)
            for bar in bars:
                bar.set(hatch=filling(index), edgecolor=FAINT, linewidth=0)
            below = [low + more for low, more in zip(below, rows, strict=True)]
        axes.set_ylabel("rows trained")
        window_axis(axes, facts)
        axes.set_ylim(0, 1.05 * max(1, *below))
        whole_numbers(axes)
        legend_above(axes, len(facts.sources))

    counts = {
        name: sum(window.source_rows.get(name, 0) for window in facts.windows)
        for name in facts.sources
    }
    total = max(1, sum(counts.values()))
    said = [f"{name} {rows:,} ({rows / total:.0%})" for name, rows in counts.items()]
    return plot(draw, f"Rows trained in {facts.period} by source: {listed(said)}")


def phases_plot(facts: Facts) -> Plot | None:
    """Seconds by phase; None if the summary has none."""
    if not facts.phases_seconds:
        return None

    def draw(axes: Axes) -> None:
        names = list(facts.phases_seconds)
        seconds = list(facts.phases_seconds.values())
        bars = axes.barh(names, seconds, color=colour(0), height=0.6)
        axes.bar_label(bars, labels=[f" {one:.1f} s" for one in seconds])
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.12)

    said = [f"{name} {seconds:.1f} s" for name, seconds in facts.phases_seconds.items()]
    height = 0.6 + 0.32 * len(facts.phases_seconds)
    return plot(draw, f"Seconds by phase: {listed(said, most=20)}", height)


def _whole_auc(window: WindowFacts, name: str) -> Estimate | None:
    """AUC on complete labels; None while some are still missing."""
    return None if window.words_true.get(name) else window.auc_true.get(name)


def window_axis(axes: Axes, facts: Facts) -> None:
    keys = [window.window for window in facts.windows]
    places = range(0, len(keys), label_every(len(keys)))
    axes.set_xticks(list(places), [keys[place] for place in places], rotation=35, ha="right")
    axes.set_xlim(-0.6, len(keys) - 0.4)
