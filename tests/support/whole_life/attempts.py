"""Lives that end at given points, in a process that starts no thread and can be forked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from support.python_code import with_tests

NOBODY_DIED = "the life was over before that point"


@dataclass(frozen=True)
class Attempts:
    """transactions: those that write, in a life that nobody ends. faults: by point of a death."""

    transactions: int
    faults: dict[int, list[str]]

    @property
    def wrong(self) -> dict[int, list[str]]:
        return {
            point: faults
            for point, faults in self.faults.items()
            if faults and point not in self.beyond
        }

    @property
    def beyond(self) -> set[int]:
        """Points after the end of a life: its waits take some operations more or fewer."""
        reached = {point for point, faults in self.faults.items() if faults != [NOBODY_DIED]}
        return {point for point in self.faults if point > max(reached, default=0)}


def attempts(
    folder: Path, *arguments: str, seconds: float = 500, gives_way: bool = False
) -> Attempts:
    """See `python -m support.whole_life -h`. gives_way: what else runs comes first."""
    log = folder / "lives.log"
    command = ["nice", "-n", "10", sys.executable] if gives_way else [sys.executable]
    with log.open("w") as said:
        done = subprocess.run(
            [*command, "-m", "support.whole_life", str(folder / "lives"), *arguments],
            env=with_tests(),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            timeout=seconds,
            check=False,
        )
    print(log.read_text()[-20_000:])
    assert done.returncode == 0, f"exit {done.returncode}: {log}"
    first, *tried = [json.loads(line) for line in done.stdout.splitlines()]
    return Attempts(first["transactions"], {each["point"]: each["faults"] for each in tried})


def all_attempts(folder: Path, *arguments: str, seconds: float) -> Attempts:
    """`attempts`, in as many processes as there are processors; they give way to all others."""
    shares = os.cpu_count() or 1

    def share(index: int) -> Attempts:
        home = folder / f"share-{index}"
        home.mkdir()
        return attempts(
            home, *arguments, "--share", f"{index}/{shares}", seconds=seconds, gives_way=True
        )

    with ThreadPoolExecutor(shares) as pool:
        parts = list(pool.map(share, range(shares)))
    faults = {point: each for part in parts for point, each in part.faults.items()}
    return Attempts(parts[0].transactions, faults)
