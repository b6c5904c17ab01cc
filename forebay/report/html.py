"""The report as one HTML file: style, tables and plots are embedded, nothing is fetched."""

from __future__ import annotations

from forebay import __version__
from forebay.report.drawing import Plot
from forebay.report.facts import Facts
from forebay.report.label_plots import age_plot, calibration_plot, event_plot
from forebay.report.plots import auc_plot, phases_plot, rows_plot
from forebay.report.step_plots import lag_plot, loss_plot, step_rows_plot
from forebay.report.text import estimate_text, event_text, part_text, share_words, true_text
from forebay.system.extras import require_extra


def render_html(facts: Facts) -> str:
    """The whole page. Text from the summary is escaped; only our own plots are markup.

    Raises:
        MissingExtraError: when the extra `report` is not installed.
    """
    require_extra("report")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("forebay.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["estimate"] = estimate_text
    environment.filters["share"] = share_words
    environment.globals |= {"true_text": true_text, "event_text": event_text}
    environment.globals["part_text"] = part_text
    scores = {
        "AUC by window, scored at the event": event_plot(facts),
        "AUC by window, scored at publication": auc_plot(facts),
        "Calibration": calibration_plot(facts),
        "Labels known at publication": age_plot(facts),
    }
    for name, own in facts.labels.items():
        scores |= {
            f"{name}: AUC by window, scored at the event": event_plot(own),
            f"{name}: AUC by window, scored at publication": auc_plot(own),
            f"{name}: calibration": calibration_plot(own),
            f"{name}: labels known at publication": age_plot(own),
        }
    scores["Loss over steps"] = loss_plot(facts)
    rows = {
        "Rows by window and source": rows_plot(facts),
        "Rows of each source over steps": step_rows_plot(facts),
        "Lag over steps": lag_plot(facts),
        "Time by phase": phases_plot(facts),
    }
    page = environment.get_template("report.html.j2")
    return page.render(facts=facts, scores=_drawn(scores), rows=_drawn(rows), version=__version__)


def _drawn(plots: dict[str, Plot | None]) -> list[tuple[str, Plot]]:
    """With their titles."""
    return [(title, plot) for title, plot in plots.items() if plot is not None]
