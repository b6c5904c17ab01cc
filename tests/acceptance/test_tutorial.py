"""docs/tutorial.md, typed into a shell exactly as written, from an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.typed_page import Command, File, steps

PAGE = Path("docs/tutorial.md")
COMMAND_SECONDS = 240


class Reader:
    """Somebody at a terminal who does what the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unset = {"PYTHONPATH", "FOREBAY_HOME"}
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        programs = Path(sys.executable).parent
        self.environment = {**kept, "PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, command: Command) -> None:
        if command.text.startswith("cd "):
            self.folder /= command.text.removeprefix("cd ")
            return
        ended = subprocess.run(
            ["bash", "-c", command.text],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        printed = f"$ {command.text}\n{ended.stdout}"
        assert ended.returncode == 0, printed
        assert "Traceback" not in ended.stdout, printed
        assert command.is_shown_in(ended.stdout), f"{printed}\nshown:\n{command.shown}"


@pytest.mark.timeout(600)
def test_the_page_from_an_empty_directory(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    typed = []
    for step in steps(PAGE):
        if isinstance(step, File):
            step.write(reader.folder)
        else:
            reader.type(step)
            typed.append(step.text.split()[:2])
    named = ("init", "check", "run", "report", "models", "score")
    assert [["forebay", name] for name in named if ["forebay", name] not in typed] == []
    assert "mixed+head" in (reader.folder / "report.html").read_text()


def test_the_page_shows_what_each_command_prints() -> None:
    """Or its outputs would be checked for nothing."""
    commands = [step for step in steps(PAGE) if isinstance(step, Command)]
    silent = [each.text for each in commands if not "".join(each.shown).strip("…")]
    assert silent == ["cd shop"]


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        (["a b", "c"], "x a   b\nc y", True),
        (["a … d"], "a b\nc d", True),
        (["1.5 (2)"], "1x5 (2)", False),
        (["b", "a"], "a b", False),
        (["a"], "b", False),
    ],
)
def test_shown_lines_are_compared(shown: list[str], printed: str, expected: bool) -> None:
    assert Command("x", shown).is_shown_in(printed) is expected
