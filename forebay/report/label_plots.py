"""Plots of labels: event scores by window, calibration, and positives known by age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.mixture.metrics.calibration_curve import wilson
from forebay.report.drawing import FAINT, Plot, colour, legend_above, line, listed, mark, plot
from forebay.report.facts import AgePoint, CurvePoint, Facts
from forebay.report.plots import chance_line, draw_estimates, window_axis
from forebay.report.text import estimate_text, partial_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def event_plot(facts: Facts) -> Plot | None:
    """AUC of each window's events, scored when they happened; None if none are judged."""
    names = list(dict.fromkeys(name for window in facts.windows for name in window.event))
    drawn = [name for name in names if any(window.event.get(name) for window in facts.windows)]
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        for place, window in enumerate(facts.windows):
            if window.partial:
                axes.axvspan(place - 0.5, place + 0.5, color=FAINT, alpha=0.3, lw=0)
        for index, name in enumerate(drawn):
            estimates = [window.event.get(name) for window in facts.windows]
            draw_estimates(axes, estimates, index, len(drawn), name)
        chance_line(axes)
        axes.set_ylabel("AUC, scored at the event")
        window_axis(axes, facts)
        legend_above(axes, min(4, len(drawn)))

    judged = sum(window.judged for window in facts.windows)
    events = sum(window.events for window in facts.windows)
    partial = [
        f"{window.window} ({partial_text(window)})" for window in facts.windows if window.partial
    ]
    said = [f"{name} {estimate_text(one.auc)}" for name, one in facts.pooled_event.items()]
    words = f"AUC of {facts.period} by the newest model at the time of their events"
    shaded = f"; grey: labels are not complete yet: {listed(partial, 3)}" if partial else ""
    return plot(
        draw, f"{words}; pooled: {listed(said)}; {judged:,} of {events:,} events judged{shaded}"
    )


def calibration_plot(facts: Facts) -> Plot | None:
    """Observed against expected positives of rows with similar scores; None if not scored."""
    drawn = {name: points for name, points in facts.curves.items() if points}
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(drawn.items()):
            _draw_curve(axes, points, index, name)
        points = [one for points in drawn.values() for one in points]
        most = max(max(one.expected, one.observed.high) for one in points)
        axes.plot([0, most], [0, most], color=FAINT, lw=0.8, ls="--")
        axes.set_xlabel("expected share of positives")
        axes.set_ylabel("observed share")
        axes.set_xlim(0, most * 1.02)
        axes.set_ylim(0, most * 1.02)
        legend_above(axes, min(4, len(drawn)))

    said = [f"{name} {facts.pooled_event[name].calibration:.2f}" for name in drawn]
    words = "Calibration: expected positives per observed one, 1.00 is ideal"
    return plot(draw, f"{words}: {listed(said)}", height=3.6)


def age_plot(facts: Facts) -> Plot | None:
    """Share of positives known at publication, by the age of their rows; None for a single age."""
    if len(facts.ages) < 2:
        return None
    rates = [wilson(min(one.fresh, one.complete), one.complete) for one in facts.ages]

    def draw(axes: Axes) -> None:
        draw_estimates(axes, rates, 0, 1, "known")
        axes.set_xticks(range(len(facts.ages)), [_age_text(one) for one in facts.ages])
        axes.set_xlim(-0.6, len(facts.ages) - 0.4)
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("time from the event to its publication in the stream")
        axes.set_ylabel("positives known")

    said = [
        f"{_age_text(one)} {rate.value:.0%} of {one.complete:,}"
        for one, rate in zip(facts.ages, rates, strict=True)
    ]
    return plot(draw, f"Positives known when published, by age: {listed(said)}", height=2.4)


def _draw_curve(axes: Axes, points: list[CurvePoint], index: int, name: str) -> None:
    observed = [one.observed for one in points]
    reach = ([one.value - one.low for one in observed], [one.high - one.value for one in observed])
    axes.errorbar(
        [one.expected for one in points],
        [one.value for one in observed],
        reach,
        fmt=mark(index),
        ls=line(index),
        ms=4,
        lw=1.2,
        color=colour(index),
        label=name,
    )


def _age_text(age: AgePoint) -> str:
    if age.until_hours is None:
        return "longer"
    if age.until_hours < 1:
        return f"≤ {60 * age.until_hours:.0f} min"
    return (
        f"≤ {age.until_hours:.0f} h" if age.until_hours < 48 else f"≤ {age.until_hours / 24:.0f} d"
    )
