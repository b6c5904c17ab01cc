"""Writes the tables of `learning.py` into a page, between its markers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_HEAD = "| variant | AUC | against the best | better | NE | NE against the best | calibration |"
WIDTH = 110
_RULE = "|---|---|---|---|---|---|---|"


def write_page(page: Path, found: dict[str, Any], command: str) -> None:
    """Put all tables between the markers of a page."""
    write_between(page, (BEGIN, END), page_text(found, command))


def write_between(page: Path, markers: tuple[str, str], new: str) -> None:
    """Replace what is between two markers of a page.

    Raises:
        SystemExit: when the page does not hold both markers once.
    """
    text = page.read_text()
    begin, end = markers
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{page}: it needs {begin} and {end} once each")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{new}\n{end}{after}")


def page_text(found: dict[str, Any], command: str) -> str:
    """All tables, each with its market's conditions."""
    lines = [f"Measured on {found['date']}: `{command}`.", ""]
    for market in found["markets"]:
        lines += [*_market(market), ""]
    return "\n".join(lines).rstrip()


def _market(market: dict[str, Any]) -> Iterator[str]:
    low, high = (100 * share for share in market["completeness"])
    guarded = ", with the guard" if market["guarded"] else ""
    yield f"### {market['market'].capitalize()}{guarded}"
    yield ""
    seeds, baselines = ", ".join(map(str, market["seeds"])), ", ".join(market["baselines"])
    known = f"{low:.0f}-{high:.0f}%" if round(low) != round(high) else f"{low:.0f}%"
    facts = (
        f"{known} of the stream's conversions are known at publication; {market['events']:,} events"
        f" judged per seed. The best uncorrected tower of seeds {seeds}: {baselines}. All variants"
        f" together take {market['cpu_seconds']:.0f} CPU seconds per seed."
    )
    yield textwrap.fill(facts, WIDTH)
    yield ""
    yield _HEAD
    yield _RULE
    for name, one in market["variants"].items():
        yield (
            f"| `{name}` | {one['auc']:.4f} | {_signed(one['difference'], one['reach'], 4)} |"
            f" {one['better']}/{len(one['by_seed'])} | {one['normalised_entropy']:.3f} |"
            f" {_signed(one['entropy_difference'], one['entropy_reach'], 3)} |"
            f" {one['calibration']:.2f} |"
        )


def _signed(value: float, reach: float | None, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text if reach is None else f"{text} ± {reach:.{digits}f}"
