"""A page of docs/ as a reader follows it: files to write and commands to type, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?:\*\*`(?P<file>[^`]+)`\*\*(?:, section `(?P<section>\w+)`)?\n)?"
    r"```(?P<language>\w+(?: \w+)?)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class File:
    """A file to write.

    section: the top-level key of a YAML file that `text` replaces; None for the whole file.
    """

    name: str
    section: str | None
    text: str

    def write(self, folder: Path) -> None:
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.section is None:
            path.write_text(self.text)
            return
        old = rf"^{self.section}:\n(?:[ #].*\n|\n)*"
        replaced, count = re.subn(old, lambda _: self.text, path.read_text(), flags=re.MULTILINE)
        assert count == 1, f"{self.name} has {count} sections {self.section}"
        path.write_text(replaced)


@dataclass(frozen=True)
class Command:
    text: str
    shown: list[str]

    def is_shown_in(self, printed: str) -> bool:
        """Whether the lines are a part of what was printed, in this order.

        `…` stands for any text. Columns are aligned and lines are wrapped as the page likes.
        """
        words = " ".join(self.shown).split()
        pattern = re.escape(" ".join(words)).replace("…", ".*")
        return re.search(pattern, " ".join(printed.split())) is not None


def steps(page: Path, *more: str) -> Iterator[File | Command]:
    for block in _BLOCK.finditer(page.read_text()):
        if block["file"]:
            yield File(block["file"], block["section"], block["text"])
        elif block["language"] in {"console", *more}:
            for example in block["text"].removeprefix("$ ").split("\n$ "):
                command, *shown = example.splitlines()
                yield Command(command, shown)
