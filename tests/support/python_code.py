"""Python code in a separate process, with an environment of its own; harnesses of ours."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]


def printed(code: str, environment: Mapping[str, str], *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_json(code: str, environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(code, environment, *arguments).splitlines()[-1])
    return found


def with_tests() -> dict[str, str]:
    """An environment in which `python -m support.…` is found."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}


def require_green(
    module: str, *words: str, seed: int | None = None, seconds: float | None = None
) -> str:
    """Run a harness with a seed that is printed, by default another one each time; what it says."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    print(f"seed {seed}")
    done = subprocess.run(
        [sys.executable, "-m", module, "--seed", str(seed), *words],
        env=with_tests(),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-20_000:]}\n{done.stderr[-20_000:]}"
    return done.stdout
