"""What Tab offers in bash, zsh and fish, and that it costs little."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forebay import cli
from forebay.cli import COMMANDS
from forebay.commands.shared.complete import VARIABLE

# What one Tab costs is what it imports: counted, since a time depends on the machine and on
# what else it does. 310 at most, 68 of them Python's own.
MODULES_MAX = 350
Offered = Callable[..., str]
HEAVY = {"tensorflow", "pyarrow", "numpy", "pandas", "sqlalchemy", "airflow", "pyiceberg", "kafka"}
PIPELINE = """\
dataset:
  window: {window}
  start: 2026-03-01
  end: {end}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / ".forebay"))
    for folder in ("config/sources", "config/pipelines", ".forebay/jobs/ads.main.2026-03-01.g1"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("clicks", "cards", "history"):
        (tmp_path / f"config/sources/{name}.yaml").write_text("kind: log")
    pipelines = tmp_path / "config/pipelines"
    (pipelines / "ads.yaml").write_text(PIPELINE.format(window="1d", end="2026-03-05"))
    for name in ("hourly.yml", "hourly.yaml"):
        (pipelines / name).write_text(PIPELINE.format(window="1h", end="2026-03-01T03:00:00Z"))
    (pipelines / "broken.yaml").write_text("dataset: [")
    (pipelines / "odd.yaml").write_text("dataset: {start: soon, window: 3}")
    (pipelines / "notes.txt").write_text("no pipeline")
    return tmp_path


def variables(shell: str, line: str) -> dict[str, str]:
    """What a shell sets when Tab is typed at the end of a line."""
    words = line.split(" ")
    of_bash = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    of_others = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return {VARIABLE: f"complete_{shell}", **(of_bash if shell == "bash" else of_others)}


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Offered:
    def tab(line: str, shell: str = "bash") -> str:
        for name, value in variables(shell, f"forebay {line}").items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            cli.run([])
        assert ended.value.code == 0
        return capsys.readouterr().out.strip()

    return tab


@pytest.mark.parametrize(
    ("line", "names"),
    [
        *(
            ("", list(COMMANDS)),
            ("mo", ["models"]),
            ("jobs ", ["ls", "runners", "show", "logs", "top", "resize", "pause", "resume"]),
        ),
        *(("jobs show ", ["ads.main.2026-03-01.g1"]), ("why ", ["ads", "broken", "hourly", "odd"])),
        ("why h", ["hourly"]),
        ("why ads 2026-03-0", ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]),
        ("why hourly ", ["2026-03-01T00", "2026-03-01T01", "2026-03-01T02"]),
        *(("why broken ", []), ("why odd ", []), ("why nothing ", []), ("why ../ads ", [])),
        *(("run ads --from 2026-03-04", ["2026-03-04"]), ("run ads --fr", ["--from"])),
        *(("preview c", ["cards", "clicks"]), ("preview --config elsewhere ", [])),
        ("dead ls ads --source h", ["history"]),
    ],
)
def test_bash(line: str, names: list[str], offered: Offered) -> None:
    assert offered(line).split() == names


@pytest.mark.parametrize(
    ("shell", "line", "shown"),
    [
        ("fish", "preview c", "cards\nclicks"),
        ("zsh", "mod", """_arguments '*: :(("models"))'"""),  # and no description of another
        ("fish", "mod", "models"),
    ],
)
def test_zsh_and_fish(shell: str, line: str, shown: str, offered: Offered) -> None:
    assert offered(line, shell) == shown


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_options_say_what_they_are(shell: str, offered: Offered) -> None:
    shown = offered("run ads --fr", shell)
    assert "--from" in shown
    assert "First window, for example 2026-03-01, or yesterday." in shown


def test_the_newest_hundred_windows(project: Path, offered: Offered) -> None:
    text = PIPELINE.format(window="1d", end="null").replace("2026-03-01", "2020-01-01")
    (project / "config/pipelines/ads.yaml").write_text(text)
    found = offered("why ads ").split()
    assert (len(found), found) == (100, sorted(found))
    assert offered("why ads 2020-01-0").split()[0] == "2020-01-01"


@pytest.mark.parametrize(
    "line", ["", "why ", "why ads ", "run ads --from ", "jobs show ", "models ls ", "forget ads "]
)
def test_a_tab_imports_little(line: str) -> None:
    code = (
        "import sys; from forebay import cli\n"
        "try: cli.run([])\n"
        f"finally: print(sorted({HEAVY!r} & set(sys.modules)), len(sys.modules), file=sys.stderr)"
    )
    env = {**os.environ, **variables("bash", f"forebay {line}")}
    asked = [sys.executable, "-c", code]
    ended = subprocess.run(asked, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split()
    heavy, modules = ended.stderr.strip().rsplit(maxsplit=1)
    assert heavy == "[]", "what is heavy was imported"
    assert int(modules) <= MODULES_MAX


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{VARIABLE}=complete_{shell}" in script
    assert cli.run(["completion", "csh"]) == 1
    assert "csh" in capsys.readouterr().err


def test_bash_itself_completes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", "bash"]) == 0
    program = project / "forebay"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m forebay "$@"\n')
    program.chmod(0o755)
    asked = (
        f"{capsys.readouterr().out}\n"
        "COMP_WORDS=(forebay preview c); COMP_CWORD=2\n"
        '_forebay_completion "$PWD/forebay"; echo "${COMPREPLY[@]}"'
    )
    bash = ["/bin/bash", "-c", asked]
    done = subprocess.run(bash, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "cards clicks"
