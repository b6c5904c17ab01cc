"""docs/public.md and the modules agree on what other packages may import."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.budgets import source_files

PAGE = Path("docs/public.md")


def sections() -> Iterator[tuple[str, list[str]]]:
    """Each module of the page with its names."""
    for section in PAGE.read_text().split("\n## ")[1:]:
        module, _, text = section.partition("\n")
        cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
        yield module.strip("`"), [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


PUBLIC = dict(sections())


def modules_with_names() -> set[str]:
    files = {file.resolve() for file in source_files()}
    found = [file for file in files if re.search(r"^__all__", file.read_text(), re.MULTILINE)]
    parts = [file.relative_to(Path.cwd()).with_suffix("").parts for file in found]
    return {".".join(each if each[0] == "forebay" else ("forebay", *each)) for each in parts}


def test_the_page_has_every_module_that_has_public_names() -> None:
    assert set(PUBLIC) == modules_with_names()
    assert len(PUBLIC) > 5


@pytest.mark.parametrize("module", PUBLIC)
def test_the_page_has_the_names_of_the_module_and_each_says_what_it_is(module: str) -> None:
    names = PUBLIC[module]
    found = importlib.import_module(module)
    assert sorted(names) == sorted(found.__all__)
    assert len(set(names)) == len(names)
    objects = {name: getattr(found, name) for name in names}
    assert [name for name, each in objects.items() if callable(each) and not each.__doc__] == []


def test_a_program_can_import_all_of_it() -> None:
    """In a process of its own, where nothing else was imported before."""
    lines = [f"from {module} import {', '.join(names)}" for module, names in PUBLIC.items()]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
