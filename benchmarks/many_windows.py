"""`forebay run` over many windows of three rows: CPU seconds per window, few windows and many.

Both runs are real: planning, one job with its processes, training with a counting model, judging
and publishing. CPU is that of all processes, those that outlive the command included.

    python benchmarks/many_windows.py --windows 500
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hourly import HOUR, write_project

from forebay.system.processes.parent import adopt_orphans

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 3
FEW = 50


@dataclass(frozen=True)
class Spent:
    """What a run took."""

    windows: int
    cpu_seconds: float
    seconds: float

    @property
    def per_window(self) -> float:
        """CPU seconds."""
        return self.cpu_seconds / self.windows


def run(root: Path, windows: int) -> Spent:
    """Train all windows in one call."""
    write_project(
        root,
        START,
        windows,
        ROWS,
        model={"kind": "count"},
        train={"paradigm": "batch"},
        job={"roles": {"data": {"count": 1}}},
    )
    last = START + (windows - 1) * HOUR
    span = ("--from", f"{START:%Y-%m-%dT%H}", "--to", f"{last:%Y-%m-%dT%H}")
    began, before = time.monotonic(), _used()
    subprocess.run(
        [sys.executable, "-P", "-m", "forebay.cli", "run", "ads", *span],
        cwd=root,
        env={**os.environ, "FOREBAY_HOME": str(root / "home")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    _bury_all()
    return Spent(windows, _used() - before, time.monotonic() - began)


def _bury_all() -> None:
    """Wait for the supervisor, which may outlive the command."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=500)
    given = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="many-windows-") as folder:
        few, many = run(Path(folder) / "few", FEW), run(Path(folder) / "many", given.windows)
    for each in (few, many):
        print(
            f"{each.windows:5} windows: {each.seconds:.0f} s, {each.cpu_seconds:.1f} CPU s, "
            f"{each.per_window * 1000:.0f} CPU ms per window"
        )
    print(f"ratio per window: {many.per_window / few.per_window:.2f}")


if __name__ == "__main__":
    main()
