"""Lives that end at some points, in a process that starts no thread and can be forked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]


def attempts(folder: Path, *arguments: str, seconds: float = 500) -> dict[int, list[str]]:
    """What is wrong after a death at each of the points; see `python -m support.whole_life -h`."""
    log = folder / "lives.log"
    with log.open("w") as said:
        done = subprocess.run(
            [sys.executable, "-m", "support.whole_life", str(folder / "lives"), *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            timeout=seconds,
            check=False,
        )
    print(log.read_text()[-20_000:])
    assert done.returncode == 0, f"exit {done.returncode}: {log}"
    tried = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["point"]: each["faults"] for each in tried if "point" in each}
