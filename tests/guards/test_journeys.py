"""The journeys in docs/internals/architecture.md: each step is one link, and none goes back."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = Path("docs/internals/architecture.md")
# With the most steps that a reader may be asked to follow.
JOURNEYS = {"From one YAML to a model": 32, "From a click on Backfill to a green run": 20}
STEP = re.compile(r"^(\d+)\. (.*(?:\n    ?\S.*)*)", re.MULTILINE)
LINK = re.compile(r"\[(\w+)\]\(\.\./\.\./([\w/]+\.py)\)")


def steps(journey: str) -> list[tuple[int, str]]:
    text = PAGE.read_text()
    section = re.split(r"^## ", text.partition(f"## {journey}\n")[2], flags=re.MULTILINE)[0]
    return [(int(number), step) for number, step in STEP.findall(section)]


@pytest.mark.parametrize(("journey", "most"), JOURNEYS.items())
def test_each_step_is_one_link_to_what_its_file_defines_and_none_goes_back(
    journey: str, most: int
) -> None:
    """A journey that returns to a file it has left would tell of a detour in the code."""
    found = steps(journey)
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    assert most // 2 < len(found) <= most
    links = [LINK.findall(step) for _, step in found]
    assert [step for step, link in zip(found, links, strict=True) if len(link) != 1] == []
    for ((name, file),) in links:
        defined = {
            node.name
            for node in ast.parse(Path(file).read_text()).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert name in defined, f"{file} defines no {name}"
    assert len(links) == len({file for ((_, file),) in links})
