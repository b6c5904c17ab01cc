"""The two lines that Airflow parses for one pipeline, and how they are recognised."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

_IMPORT = "from forebay.dags.factory import pipeline"
# Both arguments are Python literals as `repr` writes them: quotes of either kind.
_LITERAL = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_STUB = re.compile(
    rf"{re.escape(_IMPORT)}\n"
    rf"dag = pipeline\((?P<name>{_LITERAL}), config=(?P<config>{_LITERAL})\)"
    r"  # airflow, (?P<digest>[0-9a-f]{12})\n?"
)


class Stub(NamedTuple):
    """One stub. digest: of the YAML files that the pipeline depends on."""

    name: str
    config: Path
    digest: str

    @property
    def file_name(self) -> str:
        """What the stub's file is called."""
        return f"{self.name}.py"

    @property
    def text(self) -> str:
        """The file's content.

        A change of the YAML changes it, and so Airflow parses it again. Airflow opens no file
        that does not have the words `dag` and `airflow` in it.
        """
        call = f"pipeline({_literal(self.name)}, config={_literal(str(self.config))})"
        return f"{_IMPORT}\ndag = {call}  # airflow, {self.digest}\n"


def read_stub(path: Path) -> Stub | None:
    """The stub in a file; None when the file is somebody else's."""
    try:
        found = _STUB.fullmatch(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    name, config = ast.literal_eval(found["name"]), ast.literal_eval(found["config"])
    return Stub(name, Path(config), found["digest"])


def _literal(text: str) -> str:
    """A literal in double quotes where that needs no escapes, as a formatter would write it."""
    # The name of a file may hold what is not text: the stub is text all the same.
    shown = repr(text) if text.isprintable() else ascii(text)
    plain = shown[1:-1] == text and '"' not in text
    return f'"{text}"' if plain else shown
