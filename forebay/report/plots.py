"""Plots by window: AUC with intervals, rows by source, seconds by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.report.drawing import colour, label_every, legend_above, svg, whole_numbers
from forebay.report.facts import Facts, WindowFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from forebay.mixture.metrics.estimate import Estimate


def auc_plot(facts: Facts) -> str | None:
    """AUC on complete labels by window and paradigm with intervals; None when there is none."""
    drawn = [name for name in facts.paradigms if any(_has_auc(facts, name))]
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        for index, name in enumerate(drawn):
            estimates = [_whole_auc(window, name) for window in facts.windows]
            points = [(place, one) for place, one in enumerate(estimates) if one is not None]
            shift = (index - (len(drawn) - 1) / 2) * 0.5 / len(drawn)
            values = [one.value for _, one in points]
            reach = (
                [max(0.0, one.value - one.low) for _, one in points],
                [max(0.0, one.high - one.value) for _, one in points],
            )
            places = [place + shift for place, _ in points]
            size = 4 if len(facts.windows) <= 30 else 2
            axes.errorbar(
                places, values, reach, fmt="o", ms=size, lw=1.2, color=colour(index), label=name
            )
        axes.axhline(0.5, color="#999999", lw=0.8, ls="--")
        axes.set_ylabel("AUC, complete labels")
        _window_axis(axes, facts)
        legend_above(axes, len(drawn))

    return svg(draw)


def rows_plot(facts: Facts) -> str | None:
    """Trained rows by window, stacked by source."""
    if not facts.windows:
        return None

    def draw(axes: Axes) -> None:
        below = [0] * len(facts.windows)
        for index, name in enumerate(facts.sources):
            rows = [window.source_rows.get(name, 0) for window in facts.windows]
            axes.bar(range(len(rows)), rows, 0.7, below, color=colour(index), label=name)
            below = [low + more for low, more in zip(below, rows, strict=True)]
        axes.set_ylabel("rows trained")
        _window_axis(axes, facts)
        axes.set_ylim(0, 1.05 * max(1, *below))
        whole_numbers(axes)
        legend_above(axes, len(facts.sources))

    return svg(draw)


def phases_plot(facts: Facts) -> str | None:
    """Seconds by phase; None when the summary has none."""
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

    return svg(draw, height=0.6 + 0.32 * len(facts.phases_seconds))


def _has_auc(facts: Facts, name: str) -> list[bool]:
    return [_whole_auc(window, name) is not None for window in facts.windows]


def _whole_auc(window: WindowFacts, name: str) -> Estimate | None:
    """AUC on complete labels; None while some still have to come."""
    return None if window.words_true.get(name) else window.auc_true.get(name)


def _window_axis(axes: Axes, facts: Facts) -> None:
    keys = [window.window for window in facts.windows]
    places = range(0, len(keys), label_every(len(keys)))
    axes.set_xticks(list(places), [keys[place] for place in places], rotation=35, ha="right")
    axes.set_xlim(-0.6, len(keys) - 0.4)
