"""The table of measured regimes in docs/learning.md; `make pages` puts it there."""

from __future__ import annotations

from pathlib import Path

from forebay.mixture.advice.regimes import Regime, RegimeTable, difference_of

MEASURED = ("<!-- measured: begin -->", "<!-- measured: end -->")
SHOWN = (
    "batch",
    "mixed+head",
    "stream+fnw",
    "batch_then_stream+fnw",
    "mixture",
    "mixture+head",
    "mixture+fnw",
)


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
    """One row for each regime: its best variant, and how far behind the usual ones are."""
    lines = [f"Measured on {table.measured}: `{table.command}`.", ""]
    lines.append(f"| regime | known | best | AUC | {' | '.join(f'`{name}`' for name in SHOWN)} |")
    lines.append("|---|---|---|---|" + "---|" * len(SHOWN))
    lines += map(_row, sorted(table.regimes, key=lambda each: each.completeness))
    return "\n".join(lines)


def _row(regime: Regime) -> str:
    variants = {each.variant: each for each in regime.variants}
    behind = []
    for name in SHOWN:
        mean, half = difference_of(variants[name], regime.best)
        text = f"{mean:+.4f}" if mean else "0"
        behind.append(f"**{text}**" if half is not None and mean + half >= 0 else text)
    name = regime.name.partition(", ")[2]
    known = f"{regime.completeness:.0%}"
    return f"| {name} | {known} | `{regime.best.variant}` | {regime.best.auc:.4f} | " + " | ".join(
        [*behind[:-1], f"{behind[-1]} |"]
    )
