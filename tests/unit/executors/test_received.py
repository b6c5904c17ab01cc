"""Counted rows outlive the process that counted them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forebay.errors import DataError
from forebay.executors.received import ReceivedCounter


def test_counts_survive_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "received.bin"
    code = (
        "import os, pathlib, sys; from forebay.executors.received import ReceivedCounter\n"
        "counter = ReceivedCounter(pathlib.Path(sys.argv[1]))\n"
        "counter.add('2026-03-01', 1, 40); counter.add('2026-03-01', 1, 2)\n"
        "counter.add('2026-03-02', 3, 7); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    with ReceivedCounter(path) as counter:
        assert counter.rows("2026-03-01", 1) == 42
        assert counter.rows("2026-03-02", 3) == 7
        assert counter.rows("2026-03-02", 2) == 0


def test_it_grows_with_the_windows(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "received.bin"
    with ReceivedCounter(path) as counter:
        for number in range(200):
            counter.add(f"window-{number}", 1, number)
    with ReceivedCounter(path) as counter:
        assert [counter.rows(f"window-{number}", 1) for number in range(200)] == list(range(200))
        with pytest.raises(ValueError, match="too long"):
            counter.add("w" * 200, 1, 1)


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("not ours")
    with pytest.raises(DataError, match="no file of received rows"):
        ReceivedCounter(tmp_path / "other")
