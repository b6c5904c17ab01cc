"""Python code in a separate process, with an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def printed(code: str, environment: Mapping[str, str], *arguments: str) -> str:
    """What it prints, which has to end well."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_json(code: str, environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """What the last line that it prints says."""
    found: dict[str, Any] = json.loads(printed(code, environment, *arguments).splitlines()[-1])
    return found
