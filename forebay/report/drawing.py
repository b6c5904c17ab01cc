"""What all plots share: style, colours, and how a drawing becomes SVG text inside a page."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6f5e9c", "#7f7f7f")
LABELS_MAX = 16
_STYLE: Any = {  # a mapping of names that matplotlib types one by one
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.family": ["sans-serif"],
    "font.size": 9,
    "grid.alpha": 0.25,
    "text.parse_math": False,  # a name with two $ in it is no formula
    "svg.fonttype": "none",  # letters stay letters: small, sharp, searchable
    "svg.hashsalt": "forebay",  # the same summary gives the same page
}


def colour(index: int) -> str:
    """The colour of the index-th source or paradigm."""
    return COLOURS[index % len(COLOURS)]


def label_every(count: int) -> int:
    """Which of `count` labels are written, so that none touches the next."""
    return max(1, -(-count // LABELS_MAX))


def legend_above(axes: Axes, columns: int) -> None:
    """Names above the drawing, where they cover no mark."""
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=min(columns, 6))


def whole_numbers(axes: Axes) -> None:
    """Write the numbers of the upright axis as `12,000`."""
    axes.yaxis.set_major_formatter("{x:,.0f}")


def svg(draw: Callable[[Axes], None], height: float = 3.0) -> str:
    """One drawing as an `<svg>` element."""
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
