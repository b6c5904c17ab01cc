"""Plots of labels: event scores by window, calibration, and positives known by age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.executors.evaluation.run_summary import Summary
from forebay.mixture.metrics.calibration_curve import wilson
from forebay.mixture.metrics.figures import CurvePoint, LabelAge
from forebay.report.drawing import FAINT, Plot, colour, legend_above, line, listed, mark, plot
from forebay.report.plots import draw_aucs, draw_estimates
from forebay.report.text import estimate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def event_plot(summary: Summary) -> Plot | None:
    """AUC of each window's events, scored when they happened; None if none are judged."""
    by_name = {
        n: [one.answers[n].estimate if n in one.answers else None for one in summary.windows]
        for n in dict.fromkeys(name for one in summary.windows for name in one.answers)
    }
    drawn = {name: estimates for name, estimates in by_name.items() if any(estimates)}
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        for place, window in enumerate(summary.windows):
            if window.is_partial:
                axes.axvspan(place - 0.5, place + 0.5, color=FAINT, alpha=0.3, lw=0)
        draw_aucs(axes, summary, drawn, "AUC, scored at the event")
        legend_above(axes, min(4, len(drawn)))

    events = {window.window: window.event for window in summary.windows if window.event}
    judged = sum(event.judged for event in events.values())
    rows = sum(event.rows for event in events.values())
    partial = [
        f"{key} ({event.judged:,} of {event.rows:,} rows judged)"
        for key, event in events.items()
        if not event.complete
    ]
    said = [f"{name} {estimate_text(one.auc)}" for name, one in summary.pooled.answers.items()]
    words = f"AUC of {summary.period} by the newest model at the time of their events"
    shaded = f"; grey: labels are not complete yet: {listed(partial, 3)}" if partial else ""
    return plot(
        draw, f"{words}; pooled: {listed(said)}; {judged:,} of {rows:,} events judged{shaded}"
    )


def calibration_plot(summary: Summary) -> Plot | None:
    """Observed against expected positives of rows with similar scores; None if not scored."""
    drawn = {name: one.curve for name, one in summary.pooled.answers.items() if one.curve}
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

    said = [f"{name} {summary.pooled.answers[name].calibration:.2f}" for name in drawn]
    words = "Calibration: expected positives per observed one, 1.00 is ideal"
    return plot(draw, f"{words}: {listed(said)}", height=3.6)


def age_plot(summary: Summary) -> Plot | None:
    """Share of positives known at publication, by the age of their rows; None for a single age."""
    ages = summary.pooled.label_ages
    if len(ages) < 2:
        return None
    counts = [(one.fresh_positives, one.complete_positives) for one in ages]
    rates = [wilson(min(fresh, complete), complete) for fresh, complete in counts]

    def draw(axes: Axes) -> None:
        draw_estimates(axes, rates, 0, 1, "known")
        axes.set_xticks(range(len(ages)), [_age_text(one) for one in ages])
        axes.set_xlim(-0.6, len(ages) - 0.4)
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("time from the event to its publication in the stream")
        axes.set_ylabel("positives known")

    said = [
        f"{_age_text(one)} {rate.value:.0%} of {one.complete_positives:,}"
        for one, rate in zip(ages, rates, strict=True)
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


def _age_text(age: LabelAge) -> str:
    if age.until_seconds is None:
        return "longer"
    hours = age.until_seconds / 3600
    if hours < 1:
        return f"≤ {60 * hours:.0f} min"
    return f"≤ {hours:.0f} h" if hours < 48 else f"≤ {hours / 24:.0f} d"
