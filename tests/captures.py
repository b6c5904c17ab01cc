"""Writes what commands print in a terminal of 80 columns into the pages: `make captures`.

A block is marked with its name: `<!-- captured: NAME -->`, then a fenced block `text`.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from support.projects import Project, ads_project
from support.terminals import forebay, in_terminal

PAGES = sorted(Path("docs").rglob("*.md"))
_FIRST = ("--from", "2026-03-01", "--to", "2026-03-01")
_BOTH = ("--from", "2026-03-01", "--to", "2026-03-02")
_BLOCK = re.compile(
    r"(?<=<!-- captured: )(?P<name>[\w-]+)(?P<fence> -->\n+```text\n)(?P<text>.*?)(?=^```$)",
    re.DOTALL | re.MULTILINE,
)
_DURATION = re.compile(r"\b\d[\d.]* (?:h|min|s)\b(?: \d+ (?:min|s)\b)?")


def blocks() -> dict[str, str]:
    pages = [page.read_text() for page in PAGES]
    return {block["name"]: block["text"] for page in pages for block in _BLOCK.finditer(page)}


def write_blocks(captured: dict[str, str]) -> None:
    for page in PAGES:
        old = page.read_text()
        new = _BLOCK.sub(
            lambda found: found["name"] + found["fence"] + captured[found["name"]], old
        )
        if new != old:
            page.write_text(new)


def masked(text: str) -> str:
    """Lines without durations, which differ from run to run and decide where a text wraps."""
    return _DURATION.sub("#", " ".join(text.split()))


def captures(folder: Path) -> dict[str, str]:
    project = ads_project(folder, days=2, rows=2_000)
    project.forebay("run", "ads", *_BOTH)
    cost = _shown(project, "explain", "ads", *_FIRST, "--reprocess")
    project.forebay("run", "ads", *_FIRST, "--reprocess")
    return {"explain": cost, "why": _shown(project, "why", "ads", "2026-03-02")}


def _shown(project: Project, *arguments: str) -> str:
    seen = in_terminal(forebay(*arguments), project.root, {"FOREBAY_HOME": str(project.home)})
    assert seen.exit_code == 0, seen.text
    printed = "\n".join(seen.lines).strip("\n")
    return f"$ forebay {' '.join(arguments)}\n{printed}\n"


def main() -> None:
    """Run the commands, write the blocks."""
    with tempfile.TemporaryDirectory(prefix="forebay-captures-") as folder:
        write_blocks(captures(Path(folder)))


if __name__ == "__main__":
    main()
