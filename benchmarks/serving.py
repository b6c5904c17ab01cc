"""Rows from Parquet files to a training process: Forebay beside three others, on the same rows.

Rows are Criteo's shape (`criteo.py`: a label, 13 floats, 26 ids, one list of ids); every contender
takes the logarithm of the floats, hashes all ids and gives minibatches of 8,192 rows to a step that
only counts them:

- `forebay`: `forebay.reading`, with its driver and data executor; ids are hashed as text (FarmHash).
- `tf.data service, tf.Example` and `…, batches`: dispatcher and worker in a process of their own;
  a record is a row, or a whole minibatch of serialised tensors. The same hash, by TensorFlow.
- `Ray Data`: `read_parquet`, `map_batches`, `iter_batches`; splitmix64 of the numbers by NumPy.
- `DataLoader, N workers`: PyTorch's over pyarrow; the same NumPy.

All are started once, and read a folder of their own rows in each round, one after the other; what
is measured begins with each contender's second minibatch. CPU is that of all its processes. Ray and
PyTorch live in an environment of their own:

    python -m venv PEERS && PEERS/bin/pip install --require-hashes -r benchmarks/peers/requirements.lock
    python benchmarks/serving.py --peers PEERS/bin/python
"""  # noqa: E501 - a command is one line

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import criteo

PEERS = Path(__file__).parent / "peers"
WORKERS = (0, 1, 2)


class Round(NamedTuple):
    """What one contender took for one folder."""

    rows: float
    seconds: float
    cpu_seconds: float


class Peer:
    """A process that reads the folders that it is told."""

    def __init__(self, python: str, script: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [python, PEERS / script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "RAY_USAGE_STATS_ENABLED": "0"},
        )
        assert self._answer() == "ready"

    def read(self, folder: Path) -> Round:
        """One folder."""
        assert self._process.stdin is not None
        print(folder, file=self._process.stdin, flush=True)
        return Round(**json.loads(self._answer()))

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(30)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{self._process.args} ended with {self._process.wait(30)}")
        return line


def contenders(root: Path, windows: int, peers: str | None) -> dict[str, Peer]:
    """All, started; without Ray and PyTorch where their environment is not named."""
    config, last = str(root / "config"), f"2026-03-{windows:02d}"
    found = {
        "forebay": Peer(sys.executable, "forebay_reader.py", config, last),
        "tf.data service, tf.Example": Peer(sys.executable, "tf_service.py", "examples"),
        "tf.data service, batches": Peer(sys.executable, "tf_service.py", "batches"),
    }
    if peers is not None:
        found["Ray Data"] = Peer(peers, "ray_data.py")
        for workers in WORKERS:
            found[f"DataLoader, {workers} workers"] = Peer(peers, "torch_loader.py", str(workers))
    return found


def show(measured: dict[str, list[Round]]) -> None:
    """Each contender's rounds, and how many times Forebay's CPU and time a row takes it."""
    ours = measured["forebay"]
    for name, rounds in measured.items():
        cpu = [each.cpu_seconds / each.rows * 1e6 for each in rounds]
        rate = [each.rows / each.seconds for each in rounds]
        ratio = statistics.median(cpu) / statistics.median(
            [each.cpu_seconds / each.rows * 1e6 for each in ours]
        )
        faster = statistics.median([each.rows / each.seconds for each in ours])
        print(
            f"{name:<28} CPU us/row {min(cpu):6.2f} / {statistics.median(cpu):6.2f} / "
            f"{max(cpu):6.2f} = {ratio:5.2f}x forebay's   rows/s {statistics.median(rate):>9,.0f}"
            f" = 1/{faster / statistics.median(rate):.2f} of forebay's"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=750_000, help="in each round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", help="Python of an environment with Ray and PyTorch")
    options = parser.parse_args()
    print(f"load at start: {os.getloadavg()}; {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        criteo.write(root, options.rows, options.rounds + 1)
        started = contenders(root, options.rounds + 1, options.peers)
        measured: dict[str, list[Round]] = {name: [] for name in started}
        try:
            for number in range(options.rounds + 1):
                rows = root / "data" / f"date=2026-03-{number + 1:02d}"
                found = {name: peer.read(rows) for name, peer in started.items()}
                if number:  # the first round warms all of them
                    for name, each in found.items():
                        measured[name].append(each)
        finally:
            for peer in started.values():
                peer.close()
    print(f"load at end: {os.getloadavg()}; {options.rounds} rounds of {options.rows:,} rows")
    show(measured)


if __name__ == "__main__":
    main()
