"""The wheel of this checkout, and environments in which it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDERS = ("config", "dags", "datatasks", "executors", "mixture", "operators", "forebay")
FILES = ("Makefile", "pyproject.toml", "README.md", "LICENSE", "requirements.lock")
INSTALL_SECONDS = 900


def run(command: list[str], folder: Path, **environment: str) -> str:
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=INSTALL_SECONDS,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def built_wheel(tree: Path) -> Path:
    for name in (*FOLDERS, "examples"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(name, tree / name, symlinks=True, ignore=ignore)
    for name in FILES:
        shutil.copy(name, tree)
    here = Path(sys.prefix)
    # Nothing is set up anew, even if the copies are newer than what is installed.
    said = run(["make", "wheel", f"VENV={here}", "-o", str(here / ".ready")], tree)
    (built,) = (tree / "dist").glob("*.whl")
    assert not [name for name in ("build", "forebay.egg-info") if (tree / name).exists()]
    assert said == f"pip install '{built}[train]'\n"
    return built


def installed(environment: Path, wheel: Path, extra: str, *more: str) -> Path:
    """A new environment with the wheel and one extra of it, or none; the result is its Python.

    Versions are those of requirements.lock, so that two environments agree with each other and
    what `make setup` downloaded is found in uv's cache.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    constraints = environment.with_suffix(".txt")
    # The lock without its hashes, which only a complete list of files can have.
    lock = Path("requirements.lock").read_text()
    constraints.write_text(re.sub(r" \\\n(    --hash=\S+( \\)?\n)+", "\n", lock))
    run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], environment.parent)
    python = environment / "bin" / "python"
    wanted = [f"forebay[{extra}] @ {wheel.as_uri()}".replace("[]", ""), *more]
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    run([*install, "--constraints", str(constraints), *wanted], environment.parent)
    return python
