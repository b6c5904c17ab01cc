"""What all plots share: style, colours, and how a drawing becomes SVG text inside a page."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The page's style replaces these with colours for light and dark mode.
COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6f5e9c", "#7f7f7f")
FAINT = "#b0b0b0"
_INK = "#000000"
Line = str | tuple[int, tuple[int, ...]]
# No one has to distinguish two colours: marks, lines and fillings differ too.
_MARKS = ("o", "s", "^", "D", "v", "P")
_LINES: tuple[Line, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
_FILLINGS = ("", "//", "..", "\\\\", "xx", "++")
LABELS_MAX = 16
_STYLE: Any = {  # matplotlib has a separate type for each name
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.family": ["sans-serif"],
    "font.size": 9,
    "grid.alpha": 0.4,
    "grid.color": FAINT,
    "hatch.linewidth": 0.6,
    "text.parse_math": False,  # a name that contains two $ is not a formula
    "svg.fonttype": "none",  # text stays text: small, sharp, searchable
    "svg.hashsalt": "forebay",  # the same summary gives the same page
}


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def mark(index: int) -> str:
    return _MARKS[index % len(_MARKS)]


def line(index: int) -> Line:
    return _LINES[index % len(_LINES)]


def filling(index: int) -> str:
    return _FILLINGS[index % len(_FILLINGS)]


def label_every(count: int) -> int:
    """Write every n-th of `count` labels, so that they do not overlap; returns n."""
    return max(1, -(-count // LABELS_MAX))


def legend_above(axes: Axes, columns: int) -> None:
    """Put the legend above the drawing, where it covers no marks, and a phone shows it first."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=min(columns, 6))


def whole_numbers(axes: Axes) -> None:
    """Write the numbers of the y axis as `12,000`."""
    axes.yaxis.set_major_formatter("{x:,.0f}")


@dataclass(frozen=True)
class Plot:
    """A drawing as an `<svg>` element with a text for readers who cannot see it."""

    svg: str
    alt: str


def plot(draw: Callable[[Axes], None], alt: str, height: float = 3.0) -> Plot:
    """One drawing. alt: what it shows, in words with the figures that matter."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.4, height))
        draw(figure.add_subplot())
        text = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", metadata=metadata, transparent=True)
    # The XML prologue and doctype do not belong inside a page.
    _, _, drawn = text.getvalue().partition("<svg ")
    for index, hue in enumerate(COLOURS):
        drawn = drawn.replace(hue, f"var(--series-{index})")
    drawn = drawn.replace(FAINT, "var(--faint)").replace(_INK, "currentColor")
    return Plot(f'<svg role="img" aria-label="{escape(alt)}" {drawn}', alt)


def listed(words: Iterable[str], most: int = 6) -> str:
    """Several things in one sentence; if there are many, the first ones and how many more."""
    each = list(words)
    more = [f"{len(each) - most} more"] if len(each) > most else []
    return "; ".join([*each[:most], *more])
