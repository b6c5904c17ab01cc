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
        """The name of the stub's file."""
        return f"{self.name}.py"

    @property
    def text(self) -> str:
        """The file's content.

        A change of the YAML changes it, so that Airflow parses it again. Airflow ignores files
        that do not contain the words `dag` and `airflow`.
        """
        call = f"pipeline({_literal(self.name)}, config={_literal(str(self.config))})"
        return f"{_IMPORT}\ndag = {call}  # airflow, {self.digest}\n"


def read_stub(path: Path) -> Stub | None:
    """The stub in a file; None if the file is not a stub."""
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
    # A file name may not be valid text, but the stub must be.
    shown = repr(text) if text.isprintable() else ascii(text)
    plain = shown[1:-1] == text and '"' not in text
    return f'"{text}"' if plain else shown
