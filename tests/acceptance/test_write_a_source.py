"""docs/write-a-source.md, followed literally: another author's package with its own kind."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from support.typed_page import Command, File, steps
from support.wheels import built_wheel, run

PAGE = Path("docs/write-a-source.md")
COMMAND_SECONDS = 240
LINES_MAX = 75


def files() -> list[File]:
    """The files of the page."""
    return [step for step in steps(PAGE) if isinstance(step, File)]


def test_the_page_from_an_empty_folder(tmp_path: Path) -> None:
    # The environment of somebody who has Forebay installed; other packages are borrowed.
    (tmp_path / "tree").mkdir()
    wheel = built_wheel(tmp_path / "tree")
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    # Second on the path: what is installed in the new environment is found first.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    stranger = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{tmp_path / 'venv/bin'}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # as pip reads it: 0 means no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    python = str(tmp_path / "venv/bin/python")
    run([python, "-m", "pip", "--quiet", "install", str(wheel)], tmp_path, **stranger)
    folder = tmp_path / "forebay-sqlite"
    for file in files():
        file.write(folder)
    outputs = {}
    for command in [step for step in steps(PAGE) if isinstance(step, Command)]:
        ended = subprocess.run(
            shlex.split(command.text),
            cwd=folder,
            env=stranger,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        assert ended.returncode == 0, f"$ {command.text}\n{ended.stdout}{ended.stderr}"
        assert command.is_shown_in(ended.stdout), ended.stdout
        outputs[command.text] = ended.stdout
    assert {"python -m pip install .", "forebay check", "forebay preview clicks"} < set(outputs)
    passed = re.search(r"(\d+) passed", outputs["python -m pytest"])
    assert passed is not None
    assert int(passed[1]) >= 20
    assert "skipped" not in outputs["python -m pytest"]
    # Its kind is found where it was installed, not in the folder that it was built in.
    where = run(
        ["python", "-P", "-c", "import forebay_sqlite; print(forebay_sqlite.__file__)"],
        tmp_path,
        **stranger,
    )
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")


def test_the_class_is_few_lines_typed_and_clean(tmp_path: Path) -> None:
    """Strict mypy and ruff's defaults have nothing to say about the page's code."""
    (module,) = [file for file in files() if file.name == "forebay_sqlite.py"]
    assert len(module.text.splitlines()) <= LINES_MAX
    for file in files():
        if file.name.endswith(".py"):
            file.write(tmp_path)
    for tool in (["mypy", "--strict"], ["ruff", "check", "--isolated"]):
        pythons = [str(path) for path in sorted(tmp_path.glob("*.py"))]
        options = ["--config-file", str(Path("pyproject.toml").absolute())] * (tool[0] == "mypy")
        run([sys.executable, "-m", *tool, *options, *pythons], Path.cwd())
