"""The local plane with real processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay.errors import ConfigError
from forebay.executors.planes.base import Launch
from forebay.executors.planes.local import LocalPlane

DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


@pytest.fixture
def plane() -> Iterator[LocalPlane]:
    plane = LocalPlane()
    yield plane
    plane.stop(0)


def launch(log: Path, *command: str, index: int = 0) -> Launch:
    return Launch("data", index, command, {**os.environ, "SEEN": "yes"}, log)


def test_stop_asks_first_and_insists_later(plane: LocalPlane, tmp_path: Path) -> None:
    polite = plane.start(launch(tmp_path / "a", "sleep", "60"))
    deaf = plane.start(launch(tmp_path / "b", sys.executable, "-c", DEAF, index=1))
    while not (tmp_path / "b").read_text():
        time.sleep(0.01)
    plane.stop(0.3)
    assert (polite.poll(), deaf.poll()) == (-15, -9)


@pytest.mark.parametrize("program", ["/no/such/python", "/etc/passwd", "/etc/passwd/python"])
def test_an_interpreter_that_cannot_be_run(plane: LocalPlane, tmp_path: Path, program: str) -> None:
    with pytest.raises(ConfigError, match="interpreter of role data cannot be run"):
        plane.start(launch(tmp_path / "a", program))
