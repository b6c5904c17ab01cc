"""Where memory ends while something is decoded, that is bad data with its place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parents[1]
# What the child may take beside what it has when it begins to decode: less than what it decodes.
_LEFT_BYTES = 40 << 20
_CHILD = """
import json, pathlib, resource, sys
from support.hostile.exhausting import READERS

kind, left, folder = sys.argv[1:]
read = READERS[kind](pathlib.Path(folder))
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(left), resource.RLIM_INFINITY))
found = read()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(found))
"""


def outcome(kind: str, folder: Path, left: int) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, kind, str(left), str(folder)],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(_TESTS), *sys.path]),
            "ARROW_DEFAULT_MEMORY_POOL": "system",  # others take addresses in advance
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.guarantee(
    "there is not enough memory to decode a message or a part of a file",
    "red with its place, or a dead letter by policy",
)
@pytest.mark.parametrize("kind", ["arrow", "json", "segment", "parquet"])
def test_what_memory_does_not_hold_is_a_dead_letter(kind: str, tmp_path: Path) -> None:
    plenty = outcome(kind, tmp_path, 4 << 30)
    assert plenty["dead"] == []
    scarce = outcome(kind, tmp_path, _LEFT_BYTES)
    ((place, reason),) = scarce["dead"]
    assert place
    assert "memory" in reason or "malloc" in reason or "allocation" in reason
    if kind in {"segment", "parquet"}:
        assert scarce["rows"] + scarce["dead_rows"] == plenty["rows"]
    else:
        assert (scarce["rows"], scarce["dead_rows"]) == (2, 1), "the small messages are read"
