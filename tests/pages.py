"""Writes the pages of docs/, and tables of one, that are made from the code: `make pages`."""

from __future__ import annotations

import sys
from pathlib import Path

from support.guaranteed_cases import cases_page
from support.manual import manual_page
from support.reference import reference_page

from forebay.config.schema import json_schema
from forebay.config.specs.registry import installed_kinds
from forebay.mixture.advice.regimes import measured_regimes

_ROOT = Path(__file__).resolve().parents[1]
_DOCS = _ROOT / "docs"
# Last of all: some of the scripts have the names of packages.
sys.path.append(str(_ROOT / "benchmarks"))


def pages() -> dict[Path, str]:
    """The text of each page, by its file."""
    from learning_page import MEASURED, page_text, with_block

    learning = _DOCS / "learning.md"
    return {
        learning: with_block(learning, MEASURED, page_text(measured_regimes())),
        _DOCS / "reference.md": reference_page(json_schema(installed_kinds())),
        _DOCS / "cli.md": manual_page(),
        _DOCS / "internals" / "cases.md": cases_page(Path(__file__).parent),
    }


def main() -> None:
    """Write them."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
