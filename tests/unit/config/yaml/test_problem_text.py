"""Problems on a terminal and in Airflow: their lines are shown, without secrets in wrong places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forebay.config.checks.loaded import load_source
from forebay.config.yaml.problem_text import caret_lines, problems_text
from forebay.config.yaml.problems import Problem, errors
from forebay.system.output import redaction
from forebay.system.output.redaction import redacted

SECRET = "planted-4711"
KAFKA = "kind: kafka\noptions:\n  bootstrap: b\n  topic: t\n"
MISTAKES = {
    "nested too deep": "  client: {password: {value: SECRET}}\n",
    "below a misspelled key": "  cleint:\n    sasl:\n      password: SECRET\n",
    "below a key of no kind": "auth:\n- {user: me, password: {is: SECRET}}\n",
    "in lists below such a key": "x: {y: {password: [[SECRET]]}}\n",
    "a number": "x: {password: 4711081547110815, z: SECRET}\n",
    "a list instead of a mapping": "  client: [sasl_password, SECRET]\n",
    "no YAML behind it": "  client: {password: SECRET: x}\n",
    "no YAML below it": "  client:\n    password:\n      @SECRET\n",
    "no YAML in a text below it": "  client:\n    password: |\n        x\n      SECRET: [\n",
    "in a list as far to the left": "  password:\n  - x\n  - @SECRET\n",
    "a tab before it": "  client:\n\tpassword: SECRET\n",
    "it looks like an alias": "  client: {password: *SECRET}\n",
    "it looks like an anchor": "  client: {password: &SECRET x, more: &SECRET y}\n",
    "it looks like a tag": "  client: {password: !SECRET }\n",
    "it has a tag": "  client: {password: !secret SECRET}\n",
    "in quotes": "  client: {'ssl password' : \"SECRET\", unknown}\nunknown: 1\n",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_secret_in_a_wrong_place_is_not_shown(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "_hidden", redaction._Hidden())
    path = tmp_path / "s.yaml"
    path.write_text(KAFKA + MISTAKES[mistake].replace("SECRET", SECRET))
    problems = load_source(path, {}).problems
    assert any(problem.line > KAFKA.count("\n") for problem in problems), "it is a mistake"
    shown = redacted(problems_text(problems))
    assert SECRET not in shown
    assert "4711081547110815" not in shown


def test_what_stands_in_place_of_options_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(KAFKA + f"  client:\n    {SECRET}\n")
    told = " ".join(problem.message for problem in load_source(path, {}).problems)
    assert "options.client: a mapping is expected, not text" in told
    assert SECRET not in told


def test_the_line_of_other_keys_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("password: |\n  a\n  b\ncolumns:\n  n: ints  # secrets\n  tokenized: x\n")
    lines = [caret_lines(Problem(str(path), line, 3, "code", "text"))[0] for line in range(1, 7)]
    assert lines == [
        *("    password: ***", "      ***", "      ***"),
        *("    columns:", "      n: ints  # secrets", "      tokenized: ***"),
    ]


def caret_text(path: Path, column: int, width: int) -> str:
    """What is above the caret and to the right of it."""
    line, mark = caret_lines(Problem(str(path), 1, column, "code", "text"), width)
    assert max(len(line), len(mark)) <= width
    return line[mark.index("^") :]


def test_a_long_line_is_cut_around_the_place(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    line = "columns: {" + ", ".join(f"c{number:02}: int" for number in range(40)) + "}\n"
    path.write_text(line)
    for column in (1, 11, 61, 151, 299):
        assert caret_text(path, column, 60)[:2] == line[column - 1 : column + 1]
    assert caret_text(path, 11, 60).endswith("…")
    assert caret_text(path, 299, 400).endswith("…"), "no more of it is read"


def test_the_caret_does_not_point_behind_what_is_hidden(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"\ufeffpassword: {{a: b, c: {SECRET}}}\n", encoding="utf-8")
    assert (caret_text(path, 1, 60), caret_text(path, 23, 60)) == ("password: ***", "***")


def test_a_secret_is_hidden_before_the_line_is_cut(tmp_path: Path) -> None:
    """A filter of what is printed does not see that the rest of it is a password."""
    path = tmp_path / "s.yaml"
    line = f"{'x' * 30}: {{from: 'kafka://someone:{SECRET}@host/a', itn: {'y' * 400}}}\n"
    path.write_text(line)
    for column in range(1, 100):
        for width in (20, 60):
            shown, _ = caret_lines(Problem(str(path), 1, column, "code", "text"), width)
            assert not any(SECRET[at : at + 4] in shown for at in range(len(SECRET) - 3))
    assert caret_text(path, line.index("itn") + 1, 60).startswith("itn: yy")
    assert caret_text(path, line.index(SECRET) + 3, 60).startswith("***@host")


def test_a_place_that_is_not_there_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "short.yaml"
    path.write_text("one\n")
    assert caret_lines(Problem(str(path), 9, 1, "code", "text")) == []
    path.write_text("a: 1\nbc: 2\n")
    assert caret_lines(Problem(str(path), 2, 5, "code", "text")) == ["    bc: 2", "        ^"]
    assert caret_lines(Problem(str(path), 3, 1, "code", "text")) == []
    assert caret_lines(Problem(str(tmp_path), 1, 1, "code", "text")) == []


SLIP = Problem("a.yaml", 3, 5, "unknown-key", "unknown key 'wegiht'")


@pytest.mark.parametrize(
    ("hint", "way_out"),
    [
        *(("", ""), ("weight", " (did you mean weight?)")),
        *(('"NO way"', ' (did you mean "NO way"?)'), ("move it away", " (move it away)")),
    ],
)
def test_a_spelling_is_a_question_and_words_are_said_as_they_are(hint: str, way_out: str) -> None:
    assert str(replace(SLIP, hint=hint)) == f"a.yaml:3:5: unknown key 'wegiht'{way_out}"


def test_a_note_is_no_error() -> None:
    note = replace(SLIP, severity="note")
    assert (str(note), errors([note, SLIP])) == ("a.yaml:3:5: note: unknown key 'wegiht'", [SLIP])
    assert SLIP.to_json()["column"] == 5
    assert "severity" not in SLIP.to_json()
