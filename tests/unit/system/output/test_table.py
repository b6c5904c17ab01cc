"""Tables and lines at the width of a terminal: what is cut, broken, or neither."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.system.output import text as terminal
from forebay.system.output.counted import counted
from forebay.system.output.table import TableColumn, table_lines
from forebay.system.output.text import around, broken, fitted

COLUMNS = [TableColumn("window"), TableColumn("rows", right=True), TableColumn("reason")]
ROWS = [["2026-03-01", "1,234", "-"], ["2026-03-02", "7", "it waits for a window before it"]]


def lines(width: int, columns: list[TableColumn] = COLUMNS) -> list[str]:
    return list(table_lines(columns, ROWS, width))


def test_tables_of_any_width() -> None:
    assert lines(80) == [
        "window       rows  reason",
        "──────────────────────────────────────────────────",
        "2026-03-01  1,234  -",
        "2026-03-02      7  it waits for a window before it",
    ]
    assert lines(40)[2:] == [
        "2026-03-01  1,234  -",
        "2026-03-02      7  it waits for a window",
        "                   before it",
    ]
    assert lines(24) == [
        "window       rows",
        "─────────────────",
        "2026-03-01  1,234",
        "2026-03-02      7",
        "    reason it waits for",
        "    a window before it",
    ]
    columns = [COLUMNS[0], TableColumn("rows", right=True, moves=True), COLUMNS[2]]
    assert lines(26, columns)[2:4] == ["2026-03-01  -", "    rows 1,234"]
    drawn = list(table_lines([TableColumn("history rows", right=True)], [["5"]], 80))
    assert drawn == ["history", "   rows", "───────", "      5"]
    assert next(table_lines(COLUMNS, [], 80)) == "window  rows  reason"


texts = st.lists(st.text("ab-", min_size=1, max_size=20), max_size=12).map(" ".join)


@given(st.data(), st.integers(1, 6), st.integers(20, 100))
def test_nothing_is_lost_and_nothing_is_too_wide(
    data: st.DataObject, count: int, width: int
) -> None:
    columns = [
        TableColumn(f"c{number}", data.draw(st.booleans()), data.draw(st.booleans()))
        for number in range(count)
    ]
    rows = data.draw(st.lists(st.lists(texts, min_size=count, max_size=count), max_size=4))
    drawn = list(table_lines(columns, rows, width))
    assert max(map(len, drawn)) <= max(width, 24)
    words = [word for row in rows for cell in row for word in cell.split() if cell != "-"]
    shown = " ".join(drawn[1:]).split()
    assert all(shown.count(word) >= words.count(word) for word in set(words))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("time     about three seconds", "time     about three\n         seconds"),
        ("next: forebay why it", "next: forebay why it"),
        ("    one two three four five", "    one two three\n    four five"),
        ("model  a/path/that/is/longer/than/it", "model  a/path/that/is/longer/than/it"),
        ("first line\nsecond line that is long", "first line\nsecond line that is\nlong"),
        ("", ""),
    ],
)
def test_lines_are_broken_between_words(text: str, shown: str) -> None:
    assert broken(text, 20) == shown


def test_only_a_terminal_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "word " * 30 + "end"
    assert fitted(text, io.StringIO()) == text
    people = io.StringIO()
    people.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, fitted(text, people).split("\n"))) <= 30
    monkeypatch.setenv("COLUMNS", "1")
    assert terminal.columns() == 20


LONG = "".join(f"{number:03}" for number in range(100))


@pytest.mark.parametrize(
    ("line", "place", "shown", "before"),
    [
        ("key: value", 5, "key: value", 5),
        ("key", 3, "key", 3),
        ("key", 9, "key", 3),
        ("a" * 20, 19, "a" * 20, 19),
        ("a" * 19, 19, "a" * 19, 19),
        ("a" * 20, 20, "…" + "a" * 18, 19),
        (LONG, 0, LONG[:19] + "…", 0),
        (LONG, 10, LONG[:19] + "…", 10),
        (LONG, 11, "…" + LONG[2:20] + "…", 10),
        (LONG, 150, "…" + LONG[141:159] + "…", 10),
        (LONG, 299, "…" + LONG[281:], 19),
        (LONG, 300, "…" + LONG[282:], 19),
        ("\tx: 1", 1, "    x: 1", 4),
        ("ab\tx: 1", 3, "ab  x: 1", 4),
        ("日本: x", 4, "日本: x", 6),
        ("日" * 50, 25, "…" + "日" * 9 + "…", 9),
        ("日" * 50, 49, "…" + "日" * 9, 17),
        ("e\u0301: x", 4, "e\u0301: x", 3),
        ("\x1b: x", 3, "\\x1b: x", 6),
    ],
)
def test_what_is_shown(line: str, place: int, shown: str, before: int) -> None:
    assert around(line, place, 20) == (shown, before)


def test_one_is_singular_and_all_others_are_plural() -> None:
    shown = [counted(number, "row") for number in (0, 1, 2, 1_000)]
    assert shown == ["0 rows", "1 row", "2 rows", "1,000 rows"]
