"""The demo's second pipeline: late labels in a generated market, and how the paradigms do.

The sentences follow the measurements: another seed or version may reverse them, and the demo still
succeeds. That the mixture wins is checked elsewhere, by the chaos test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from examples.demo.count import disagreements, log_rows, parquet_rows
from examples.demo.data.market_data import prepare_market
from examples.demo.direct import Direct
from examples.demo.mode import say
from examples.demo.settings import Settings
from examples.demo.signals import undisturbed
from forebay.errors import RowsLostError
from forebay.executors.evaluation.run_summary import Summary
from forebay.report.facts import read_summary
from forebay.report.html import render_html

# What each rival of the pipeline stands for.
_RIVALS = {
    "stream": "fresh labels alone",
    "batch": "history alone, a day old",
    "mixed": "both in one tower",
    "batch_then_stream+head": "one tower, corrected alike",
}


def play_conversions(settings: Settings, config: Path, environ: Mapping[str, str]) -> None:
    """Generate or reuse the market, train its hours with `forebay run`, and print the results.

    Raises:
        ForebayError: when a window could not be trained, or rows do not agree.
    """
    market = settings.folder / "market"
    built, reused = prepare_market(market)
    say(f"conversions  {'reused' if reused else 'built'}: {built.words}")
    way = Direct(settings.home, settings.conversions, config, environ)
    try:
        summary = way.train(lambda: None)
    finally:
        with undisturbed():
            way.stop()
    stored = {
        "impressions": parquet_rows(market / "impressions", time="at", label="converted"),
        "live_impressions": log_rows(market / "live_impressions", label="converted"),
    }
    wrong = disagreements(summary, stored)
    if wrong:
        raise RowsLostError("\n".join(wrong))
    page = settings.conversions.summary.with_name("conversions.html")
    told = read_summary(settings.conversions.summary)
    page.write_text(render_html(told))
    for line in story(told):
        say(f"conversions  {line}")
    say(f"conversions  report {page}")


def story(summary: Summary) -> Iterator[str]:
    known = summary.pooled.label_completeness
    if known and known.share is not None:
        yield f"{100 * known.share:.0f}% of the purchases are known when the stream publishes them"
    first = summary.paradigms[0]
    for difference in summary.pooled.differences:
        if difference.a == first and difference.b in _RIVALS:
            yield f"{_RIVALS[difference.b]}: {difference.words}"
