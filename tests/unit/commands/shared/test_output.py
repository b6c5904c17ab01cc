"""Tables and values as commands print them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forebay.commands.shared.output import Output, OutputFormat, cell

ROWS = [
    {"name": "a", "rows": 1234567, "share": 0.5, "left": "out"},
    {"name": "long name", "rows": None, "share": 1.25},
]


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    Output(OutputFormat.TEXT).table(ROWS, ("name", "rows", "share"))
    assert capsys.readouterr().out.splitlines() == [
        "name            rows  share",
        "a          1,234,567    0.5",
        "long name          -   1.25",
    ]
    Output(OutputFormat.TEXT).table([], ("name", "rows"))
    assert capsys.readouterr().out == "name  rows\n", "without rows too"


def test_a_table_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    Output(OutputFormat.JSON).table(ROWS, ("name", "rows"))
    assert json.loads(capsys.readouterr().out) == [
        {"name": "a", "rows": 1234567},
        {"name": "long name", "rows": None},
    ]


def test_json_of_times_and_paths(capsys: pytest.CaptureFixture[str]) -> None:
    Output(OutputFormat.JSON).json({"at": datetime(2026, 3, 1, 7, tzinfo=UTC), "in": Path("a/b")})
    assert json.loads(capsys.readouterr().out) == {"at": "2026-03-01T07:00:00Z", "in": "a/b"}
    with pytest.raises(TypeError, match="set has no JSON form"):
        Output(OutputFormat.JSON).json({1})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "-"), (True, "yes"), (False, "no"), (1, "1"), (0, "0"), (["a", 1], "a, 1")),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01"),
        (datetime(2026, 3, 1, 7, tzinfo=UTC), "2026-03-01T07:00Z"),
        (datetime(2026, 3, 1, 7, 0, 5, tzinfo=UTC), "2026-03-01T07:00:05Z"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text
