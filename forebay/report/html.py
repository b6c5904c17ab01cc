"""The report as one HTML file: style, tables and plots are embedded, nothing is fetched."""

from __future__ import annotations

from forebay import __version__
from forebay.executors.evaluation.run_summary import Summary
from forebay.home.paths import DEFAULT_LINE
from forebay.report import text
from forebay.report.drawing import Plot
from forebay.report.facts import headline_of, parts_of
from forebay.report.label_plots import age_plot, calibration_plot, event_plot
from forebay.report.plots import (
    auc_plot,
    lag_plot,
    loss_plot,
    phases_plot,
    rows_plot,
    step_rows_plot,
)
from forebay.system.extras import require_extra


def render_html(summary: Summary) -> str:
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
    environment.filters |= {"estimate": text.estimate_text, "share": text.share_words}
    environment.filters |= {"headline": headline_of, "parts": parts_of}
    environment.globals["text"] = text
    scores: dict[str, Plot | None] = {}
    for name, own in {"": summary, **summary.by_label}.items():
        of = {
            "AUC by window, scored at the event": event_plot(own),
            "AUC by window, scored at publication": auc_plot(own),
            "calibration": calibration_plot(own),
            "labels known at publication": age_plot(own),
        }
        scores |= {f"{name}: {t}" if name else t[0].upper() + t[1:]: p for t, p in of.items()}
    scores["Loss over steps"] = loss_plot(summary)
    rows = {
        "Rows by window and source": rows_plot(summary),
        "Rows of each source over steps": step_rows_plot(summary),
        "Lag over steps": lag_plot(summary),
        "Time by phase": phases_plot(summary),
    }
    line = "" if summary.line == DEFAULT_LINE else summary.line
    told = {"summary": summary, "line": line, "version": __version__}
    page = environment.get_template("report.html.j2")
    return page.render(scores=_drawn(scores), rows=_drawn(rows), **told)


def _drawn(plots: dict[str, Plot | None]) -> list[tuple[str, Plot]]:
    """With their titles."""
    return [(title, plot) for title, plot in plots.items() if plot is not None]
