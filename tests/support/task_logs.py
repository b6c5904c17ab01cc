"""What a task writes into its log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from forebay.operators.stages.base import StageOperator


def lines_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines that tasks write from here on; the list grows."""
    lines: list[str] = []

    def write(text: str, *values: object) -> None:
        lines.append(text % values)

    log = SimpleNamespace(info=write, warning=write, error=write)
    monkeypatch.setattr(StageOperator, "log", log, raising=False)
    return lines
