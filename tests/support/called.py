"""Commands of `forebay` called as a function: what they print and how they end, without a process.

Where a test is about processes (kills, signals, standard streams, what is imported), it starts one.
"""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from forebay.cli import run
from forebay.home.database.open import close_databases


def called(
    arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder. environment: all of its variables."""
    out, err = io.StringIO(), io.StringIO()
    close_databases()
    with _environment(environment), chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            code = run(arguments)
        finally:
            close_databases()
    return subprocess.CompletedProcess(
        ["forebay", *arguments], code, out.getvalue(), err.getvalue()
    )


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
