"""The line that changes while a command works, and the plain lines if it cannot change."""

from __future__ import annotations

import io
import sys
import time

import pytest

from forebay.commands.shared import live_line
from forebay.commands.shared.live_line import LiveLine, working

CLEAR = "\r\x1b[2K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def await_text(self, text: str) -> None:
        deadline = time.monotonic() + 20
        while text not in self.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)


def test_a_pipe_gets_lines() -> None:
    pipe = io.StringIO()
    with LiveLine(pipe, live=False) as line:
        assert line.width is None
        line.doing("reading")
        line.figures("1 of 2")
        line.figures("2 of 2")
        line.say("done")
    assert pipe.getvalue().splitlines() == ["reading …", "1 of 2", "done"]


def test_a_pipe_gets_figures_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_line, "LINE_EVERY_SECONDS", 0.0)
    pipe = io.StringIO()
    with LiveLine(pipe, live=False) as line:
        for figures in ("1 of 2", "1 of 2", "2 of 2"):
            line.figures(figures)
    assert pipe.getvalue().splitlines() == ["1 of 2", "2 of 2"]


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = Terminal()
    with LiveLine(terminal, live=True) as line:
        assert line.width == 29
        line.doing("reading \x1b[2J")
        line.figures("1 of 2")
        line.figures("1 of 2")
        line.say("a line that stays and is longer than the terminal")
        line.figures("x" * 100)
    assert terminal.getvalue() == (
        f"{CLEAR}reading \\x1b[2J …{CLEAR}1 of 2"
        f"{CLEAR}a line that stays and is\nlonger than the terminal\n"
        f"{CLEAR}{'x' * 29}{CLEAR}"
    )


def test_what_the_terminal_shows_of_ctrl_c_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown a moment after the signal."""
    terminal, pipe = Terminal(), io.StringIO()
    with LiveLine(terminal, live=True) as line:
        line.doing("training")
        monkeypatch.setattr(time, "sleep", lambda _: terminal.write("^C"))
        line.interrupted()
    with LiveLine(pipe, live=False) as line:
        line.interrupted()
    assert (terminal.getvalue(), pipe.getvalue()) == (f"{CLEAR}training …^C{CLEAR}{CLEAR}", "")


def test_a_line_that_does_not_change_says_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_line, "TICK_SECONDS", 0.05)
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    with LiveLine(terminal, live=True) as line:
        line.doing("planning for a long time")
        line.say("waiting for clicks")
        terminal.await_text("  1 s")
    # After a line that stays the work is drawn again.
    drawn = terminal.getvalue().partition("waiting for clicks\n")[2].split(CLEAR)
    assert "planning for a  1 s" in drawn or "planning for a   1 s" in drawn
    assert max(map(len, drawn)) <= 19
    assert drawn[-1] == "", "and it is taken away at the end"


def test_what_others_write_goes_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with working("starting the broker") as line:
        sys.stderr.write("fetching ")
        sys.stderr.write("it\n")
        line.say("a note")
        line.doing("nearly there")
    assert terminal.getvalue() == (
        f"{CLEAR}starting the broker …{CLEAR}fetching it\n"
        f"{CLEAR}a note\n{CLEAR}nearly there …{CLEAR}"
    )
    assert sys.stderr is terminal


def test_a_pipe_is_not_told_what_a_command_does_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with working("starting the broker") as line:
        line.say("a note")
        sys.stderr.write("a warning\n")
    assert pipe.getvalue() == "a note\na warning\n"
