"""The tables of measured regimes in docs/learning.md; `make pages` puts them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from forebay.mixture.advice.regimes import Regime, RegimeTable, difference_of

MEASURED = ("<!-- measured: begin -->", "<!-- measured: end -->")
_HEAD = "| variant | AUC | against the best | calibration |\n|---|---|---|---|"


def with_block(page: Path, markers: tuple[str, str], new: str) -> str:
    """The text of a page with something else between two markers.

    Raises:
        SystemExit: when the page does not hold both markers once.
    """
    text = page.read_text(encoding="utf-8")
    begin, end = markers
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{page}: it needs {begin} and {end} once each")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n{new}\n{end}{after}"


def page_text(table: RegimeTable) -> str:
    """All tables, each with what is special about its data; the best variant in bold."""
    lines = [f"Measured on {table.measured}: `{table.command}`."]
    lines += [line for regime in table.regimes for line in _regime(regime)]
    return "\n".join(lines)


def _regime(regime: Regime) -> Iterator[str]:
    yield f"\n### {regime.name.capitalize()}\n\n{regime.data}."
    yield f"{regime.completeness:.0%} of positives known at publication; {regime.seeds} seeds.\n"
    yield _HEAD
    for each in sorted(regime.variants, key=lambda one: -one.auc):
        name, apart = f"`{each.name}`", ""
        if each == regime.best:
            name = f"**{name}**"
        else:
            mean, half = difference_of(each, regime.best)
            apart = f"{mean:+.4f}" + ("" if half is None else f" ± {half:.4f}")
        calibration = "" if each.calibration is None else f"{each.calibration:.2f}"
        yield f"| {name} | {each.auc:.4f} | {apart} | {calibration} |"
