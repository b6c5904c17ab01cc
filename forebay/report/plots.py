"""Plots of a run as SVG text that stands inside a page. matplotlib draws without a display."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from forebay.report.facts import Facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6f5e9c", "#7f7f7f")
_STYLE: Any = {  # a mapping of names that matplotlib types one by one
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.family": ["sans-serif"],
    "font.size": 9,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",  # letters stay letters: small, sharp, searchable
    "svg.hashsalt": "forebay",  # the same summary gives the same page
}


def auc_plot(facts: Facts) -> str | None:
    """AUC on complete labels by window and paradigm with intervals; None when there is none."""
    drawn = [name for name in facts.paradigms if any(_has_auc(facts, name))]
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        for index, name in enumerate(drawn):
            estimates = [window.auc_true.get(name) for window in facts.windows]
            points = [(place, one) for place, one in enumerate(estimates) if one is not None]
            shift = (index - (len(drawn) - 1) / 2) * 0.18
            values = [one.value for _, one in points]
            reach = (
                [max(0.0, one.value - one.low) for _, one in points],
                [max(0.0, one.high - one.value) for _, one in points],
            )
            places = [place + shift for place, _ in points]
            colour = _COLOURS[index % len(_COLOURS)]
            axes.errorbar(
                places, values, yerr=reach, fmt="o", ms=4, lw=1.2, color=colour, label=name
            )
        axes.axhline(0.5, color="#999999", lw=0.8, ls="--")
        axes.set_ylabel("AUC, complete labels")
        _window_axis(axes, facts)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=len(drawn))

    return _svg(draw)


def rows_plot(facts: Facts) -> str | None:
    """Trained rows by window, stacked by source."""
    if not facts.windows:
        return None

    def draw(axes: Axes) -> None:
        below = [0] * len(facts.windows)
        for index, name in enumerate(facts.sources):
            rows = [window.source_rows.get(name, 0) for window in facts.windows]
            colour = _COLOURS[index % len(_COLOURS)]
            axes.bar(range(len(rows)), rows, bottom=below, width=0.7, color=colour, label=name)
            below = [low + more for low, more in zip(below, rows, strict=True)]
        axes.set_ylabel("rows trained")
        _window_axis(axes, facts)
        axes.set_ylim(0, 1.2 * max(1, *below))
        axes.legend(loc="upper left", frameon=False, ncols=len(facts.sources))

    return _svg(draw)


def phases_plot(facts: Facts) -> str | None:
    """Seconds by phase; None when the summary has none."""
    if not facts.phases_seconds:
        return None

    def draw(axes: Axes) -> None:
        names = list(facts.phases_seconds)
        seconds = list(facts.phases_seconds.values())
        bars = axes.barh(names, seconds, color=_COLOURS[0], height=0.6)
        axes.bar_label(bars, labels=[f" {one:.1f} s" for one in seconds])
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.12)

    return _svg(draw, height=0.6 + 0.32 * len(facts.phases_seconds))


def _has_auc(facts: Facts, name: str) -> list[bool]:
    return [window.auc_true.get(name) is not None for window in facts.windows]


def _window_axis(axes: Axes, facts: Facts) -> None:
    keys = [window.window for window in facts.windows]
    every = max(1, len(keys) // 16)
    places = range(0, len(keys), every)
    axes.set_xticks(list(places), [keys[place] for place in places], rotation=35, ha="right")
    axes.set_xlim(-0.6, len(keys) - 0.4)


def _svg(draw: Callable[[Axes], None], height: float = 3.0) -> str:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.4, height))
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Inside a page the XML prologue and doctype have no place.
    return text.getvalue()[text.getvalue().index("<svg") :]
