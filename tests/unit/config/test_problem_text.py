"""Problems on a terminal and in Airflow: their lines are shown, without secrets in wrong places."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.config.loaded import load_source
from forebay.config.problem_text import caret_lines, problems_text
from forebay.config.problems import Problem
from forebay.system import redaction
from forebay.system.redaction import redacted

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
        "    password: ***",
        "      ***",
        "      ***",
        "    columns:",
        "      n: ints  # secrets",
        "      tokenized: ***",
    ]
