"""What strangers may send, with 100,000 faults: nothing kills its reader or takes much memory.

Each is read, or refused with a reason. Again, by its seed: `FOREBAY_HOSTILE_SEED=S`, and one alone:
`python -m support.hostile KIND --seed S --first NUMBER`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support.python_code import with_tests

SEED = "FOREBAY_HOSTILE_SEED"
_DEATHS_MAX = 3


def require_read(kind: str, count: int, folder: Path, timeout_seconds: float) -> None:
    """Fail with what killed its reader, or was neither read nor refused with a reason."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
    print(f"seed {seed} ({SEED}={seed} takes it again)")
    failures: list[str] = []
    first = refused = 0
    while first < count and len(failures) < _DEATHS_MAX:
        done = _read(kind, seed, first, count - first, folder, timeout_seconds)
        if done.returncode == 0:
            found = json.loads(done.stdout)
            refused += found["refused"]
            failures += found["failures"]
            print(f"{kind}: {count} read, {refused} refused, {found['resident'] >> 20} MB")
            break
        (number,) = struct.unpack("<q", (folder / "reading").read_bytes())
        failures.append(f"number {number}: {_death(done)}")
        first = number + 1
    again = f"python -m support.hostile {kind} --seed {seed} --first NUMBER"
    assert not failures, f"{again}\n" + "\n".join(failures)
    assert 0 < refused < count, "faults of which all or none are seen are no test"


def _read(
    kind: str, seed: int, first: int, count: int, folder: Path, timeout_seconds: float
) -> subprocess.CompletedProcess[str]:
    numbers = ("--seed", str(seed), "--first", str(first), "--count", str(count))
    command = [sys.executable, "-X", "faulthandler", "-m", "support.hostile", kind, *numbers]
    environment = with_tests() | {"OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    try:
        return subprocess.run(
            [*command, "--folder", str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -signal.SIGALRM, "", "it took too long")


def _death(done: subprocess.CompletedProcess[str]) -> str:
    cause = signal.Signals(-done.returncode).name if done.returncode < 0 else done.returncode
    return f"{cause}\n{done.stderr[-4000:]}"


COUNTS = {
    "arrow": 30_000,
    "json": 60_000,
    "avro": 15_000,
    "protobuf": 15_000,
    "record_batch": 6_000,
    "segment": 2_500,
    "parquet": 1_500,
    "footer": 6_000,
}


@pytest.mark.guarantee(
    "any byte changes in a message, a record batch, a segment or a Parquet file",
    "it is read, or refused with a reason; the messages beside it are read",
)
@pytest.mark.parametrize("kind", COUNTS)
def test_faults_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    require_read(kind, COUNTS[kind], tmp_path, 250)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", COUNTS)
def test_ten_times_as_many(kind: str, tmp_path: Path) -> None:
    require_read(kind, 10 * COUNTS[kind], tmp_path, 3500)
