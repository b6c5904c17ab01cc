"""The report as one HTML file: style, tables and plots inside, nothing fetched."""

from __future__ import annotations

from forebay import __version__
from forebay.report.facts import Facts
from forebay.report.plots import auc_plot, phases_plot, rows_plot
from forebay.report.step_plots import lag_plot, loss_plot, step_rows_plot
from forebay.report.text import estimate_text, share_words
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
    plots = {
        "AUC by window": auc_plot(facts),
        "Rows by window and source": rows_plot(facts),
        "Rows of each source over steps": step_rows_plot(facts),
        "Loss over steps": loss_plot(facts),
        "Lag over steps": lag_plot(facts),
        "Time by phase": phases_plot(facts),
    }
    drawn = {title: plot for title, plot in plots.items() if plot is not None}
    page = environment.get_template("report.html.j2")
    return page.render(facts=facts, plots=drawn, version=__version__)
