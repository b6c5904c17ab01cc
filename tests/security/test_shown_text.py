"""What people are shown of data is text: no markup of a page, nothing that a terminal obeys."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.links import link
from support.model_lines import record
from support.summaries import facts_of, two_labels

from forebay.cli import run
from forebay.commands.shared.output import Output, OutputFormat, note
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.dead_letters import DeadLetter
from forebay.home.database.format import record_format
from forebay.home.paths import Home
from forebay.report.html import render_html
from forebay.report.text import report_lines

MARKUP = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "$\\frac{1}{0}$ $x$",
    "[bold red]x[/bold red]",
)
# Of sources, variants, phases, labels, a sliced feature and its values.
NAMES = {"flights_table", "departures", "mixture", "plan", "sale", "carrier", "<AA>"}
# Clears the screen; names the window; a link; moves back; turns the direction; C1 codes.
OBEYED = (
    "\x1b[2J\x1b]0;x\x07\x1b]8;;https://example.org\x1b\\\r\x08\x9b2J\N{RIGHT-TO-LEFT OVERRIDE}"
)


class Page(HTMLParser):
    """Elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.comments: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


# Nothing but a few words, or a time, is read as one of these.
TYPED = {"feed", "label", "scored_at", "published_at"}


def replaced(value: Any, text: str) -> Any:
    """A summary in which every text is another one, and every name of a source or paradigm too."""
    if isinstance(value, dict):
        return {
            key + text if key in NAMES else key: (item if key in TYPED else replaced(item, text))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [replaced(item, text) for item in value]
    return value + text if isinstance(value, str) else value


@pytest.fixture(scope="module")
def sound() -> Page:
    return Page(render_html(facts_of(two_labels())))


@pytest.mark.guarantee("text from data in reports and on terminals", "it is shown as text")
@pytest.mark.parametrize("text", MARKUP)
def test_a_report_holds_no_element_that_data_brought(sound: Page, text: str) -> None:
    hostile = Page(render_html(facts_of(replaced(two_labels(), text))))
    assert hostile.elements == sound.elements
    assert hostile.attributes == sound.attributes
    shown = " ".join(hostile.text)
    assert f"before start{text}" not in shown  # of the warm start, which is not listed
    assert f"/models/<flights>/saved_model{text}" in shown
    assert f"flights_table{text}" in shown  # in a plot
    for words in ("Label sale{}", "sale{}: calibration", "AUC by slice of carrier{}", "<AA>{}"):
        assert words.format(text) in shown
    assert not any("alert" in comment and "<" in comment for comment in hostile.comments)


@pytest.mark.parametrize("width", [200, None])
def test_a_report_moves_no_cursor(width: int | None) -> None:
    written = "\n".join(report_lines(facts_of(replaced(two_labels(), OBEYED)), width))
    assert_plain(written)
    assert "\\x1b[2J" in written


def assert_plain(text: str) -> None:
    """Nothing of what came from data is left but as codes."""
    assert not set(text) & {"\x1b", "\x07", "\r", "\x08", "\x9b", "\N{RIGHT-TO-LEFT OVERRIDE}"}


def test_lines_notes_and_tables_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Output(OutputFormat.TEXT)
    shown.line(f"a\tb\nc {OBEYED}")
    shown.table([{"reason": OBEYED}], ["reason"])
    note(OBEYED)
    said = capsys.readouterr()
    assert_plain(said.out + said.err)
    assert said.out.startswith("a\tb\nc \\x1b[2J\\x1b]0;x\\x07")


def test_a_table_on_a_terminal_moves_no_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("forebay.commands.shared.output.is_terminal", lambda: True)
    Output(OutputFormat.TEXT).table([{"reason": f"[red]{OBEYED}"}], ["reason"])
    said = capsys.readouterr().out
    assert_plain(said)
    assert "[red]" in said


def test_reasons_of_dead_letters_and_errors_move_no_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    home = Home(tmp_path)
    record_format(home)
    record(ModelChain(home, "ads"), link("2026-03-01"))
    folder = home.model("ads", "trial", "2026-03-02", 1) / "dead"
    folder.mkdir(parents=True)
    letter = DeadLetter(
        source="clicks",
        window="2026-03-02",
        generation=1,
        location={"topic": OBEYED, "offset": 7},
        reason=f"bad {OBEYED}",
        row={"text": OBEYED},
    )
    (folder / "letters.jsonl").write_text(letter.model_dump_json() + "\n")
    for arguments in (["dead", "ls", "ads"], ["dead", "show", "ads"], ["report", OBEYED]):
        run(arguments)
        said = capsys.readouterr()
        assert_plain(said.out + said.err)
        assert "\\x1b[2J" in said.out + said.err
