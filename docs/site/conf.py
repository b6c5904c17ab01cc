"""Settings of Sphinx for `make docs`: README, CHANGELOG, CONTRIBUTING and docs/ as one site.

The pages link each other as files of the repository, so the repository is the source folder, and a
link to a file of the code leads to a copy of that file. Nothing on a page comes from a network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

REPOSITORY = Path(__file__).resolve().parents[2]
# What the side bar shows, from top to bottom; README is the first page.
NAVIGATION = {
    "Begin": [
        "docs/tutorial",
        "docs/sources",
        "docs/kafka",
        "docs/concepts",
        "docs/learning",
        "docs/limits",
    ],
    "Run": [
        "docs/airflow",
        "docs/serving",
        "docs/environment",
        "docs/internals/home",
        "docs/internals/security",
    ],
    "Look up": ["docs/reference", "docs/cli", "docs/summary", "CHANGELOG"],
    "Extend": ["docs/write-a-source", "docs/reader", "docs/public", "CONTRIBUTING"],
    "Understand": [
        *(f"docs/internals/{name}" for name in ("architecture", "guarantees", "cases", "protocol")),
        "docs/performance",
    ],
}

project = "Forebay"
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/*.md", "docs/internals/*.md"]
# All else is left out by name, or Sphinx would walk through it and through what it links to.
exclude_patterns = [
    path.name for path in REPOSITORY.iterdir() if path.name != "docs" and path.suffix != ".md"
]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Forebay"
html_copy_source = False
html_show_sourcelink = False
# index.html, which leads to the first page.
html_extra_path = ["first"]


def setup(app: Sphinx) -> None:
    """Give the first page its side bar, which the README itself does not show."""
    app.connect("source-read", _add_navigation)


def _add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        for caption, pages in NAVIGATION.items():
            names = "\n".join(pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"
