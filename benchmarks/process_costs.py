"""CPU seconds and memory of a tree of processes by part, those that came and went included.

Every sample reads `/proc/<pid>/stat`. A process that ends between two samples leaves its last bit
in its parent's `cutime`; it is given to the part of the children that were missing then, so the
parts add up to what the kernel charged to the whole tree.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

TICK = os.sysconf("SC_CLK_TCK")
PERIOD_SECONDS = 0.05
MEMORY_EVERY = 100  # samples: smaps_rollup walks all pages of a process
YOUNG = 5  # samples in which a process may still become another program


@dataclass
class Seen:
    """One process at one sample, in clock ticks. `reaped`: of its children that have ended."""

    parent: int
    started: int
    own: int
    reaped: int
    part: str
    age: int


def stat(pid: int) -> tuple[int, int, int, int] | None:
    """Parent, start, own and reaped ticks; None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    user, system, children_user, children_system = map(int, fields[11:15])
    return int(fields[1]), int(fields[19]), user + system, children_user + children_system


def command_and_environment(pid: int) -> tuple[str, dict[str, str]]:
    """The command line, and the environment that the process was started with."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return "", {}
    texts = (pair.decode(errors="replace").partition("=") for pair in pairs if pair)
    return command.decode(errors="replace"), {name: value for name, _, value in texts}


def pss_bytes(pid: int) -> int:
    """A process's share of memory, shared pages divided among those that share them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def cpu_below() -> float:
    """Seconds of all processes below this one, those included that have ended, at this moment."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = used.ru_utime + used.ru_stime
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += sum(each.cpu_times()[:4])  # its own, and of its children that have ended
    return found


class Costs:
    """Samples the processes that `part_of` names a part for, until it is closed.

    part_of: command line and environment to a part's name; an empty text for a stranger.
    """

    def __init__(self, part_of: Callable[[str, dict[str, str]], str]) -> None:
        self._part_of = part_of
        self._seen: dict[int, Seen] = {}
        self._strangers: dict[tuple[int, int], int] = defaultdict(int)
        self._ticks: dict[str, int] = defaultdict(int)
        self._memory: dict[str, int] = defaultdict(int)
        self._most = 0
        self._count = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sample()
        self._thread.start()

    def cpu_seconds(self) -> dict[str, float]:
        """By part, from the first sample to now."""
        self.sample()
        with self._lock:
            return {part: ticks / TICK for part, ticks in self._ticks.items()}

    def memory_bytes(self) -> dict[str, int]:
        """PSS by part at the moment when the whole tree had most."""
        with self._lock:
            return dict(self._memory)

    def close(self) -> None:
        """Sample no more."""
        self._closed.set()
        self._thread.join()

    def sample(self) -> None:
        """Look at all processes once."""
        with self._lock:
            self._look()

    def _run(self) -> None:
        while not self._closed.wait(PERIOD_SECONDS):
            self.sample()

    def _look(self) -> None:
        before, now = self._seen, self._living()
        for pid, seen in now.items():
            old = before.get(pid)
            if old is None or old.started != seen.started:
                self._ticks[seen.part] += seen.own + seen.reaped
                continue
            self._ticks[seen.part] += seen.own - old.own
            self._take_reaped(pid, seen, seen.reaped - old.reaped, now)
        self._seen = now
        if self._count % MEMORY_EVERY == 0:
            self._weigh(now)
        self._count += 1

    def _take_reaped(self, pid: int, seen: Seen, ticks: int, now: dict[int, Seen]) -> None:
        """Time of children that ended since the last sample, less what was seen of it."""
        if not ticks:
            return
        gone, parents = [], {pid}
        while parents:
            children = {
                number: child
                for number, child in self._seen.items()
                if child.parent in parents and number not in now
            }
            gone += children.values()
            parents = set(children)
        rest = ticks - sum(child.own + child.reaped for child in gone)
        parts = [child.part for child in gone] or [seen.part]
        for number, part in enumerate(parts):
            self._ticks[part] += rest // len(parts) + (number < rest % len(parts))

    def _living(self) -> dict[int, Seen]:
        found: dict[int, Seen] = {}
        for pid in psutil.pids():
            facts = stat(pid)
            if facts is None:
                continue
            parent, started, own, reaped = facts
            if self._strangers.get((pid, started), 0) > YOUNG:
                continue
            old = self._seen.get(pid)
            age = old.age + 1 if old is not None and old.started == started else 0
            if old is None or age <= YOUNG:
                part = self._part_of(*command_and_environment(pid)) or self._inherited(parent)
            else:
                part = old.part
            if part:
                found[pid] = Seen(parent, started, own, reaped, part, age)
            else:
                self._strangers[pid, started] += 1
        return found

    def _inherited(self, parent: int) -> str:
        """PostgreSQL's processes overwrite what they were started with."""
        above = self._seen.get(parent)
        return above.part if above is not None else ""

    def _weigh(self, now: dict[int, Seen]) -> None:
        memory: dict[str, int] = defaultdict(int)
        for pid, seen in now.items():
            memory[seen.part] += pss_bytes(pid)
        if sum(memory.values()) > self._most:
            self._most, self._memory = sum(memory.values()), memory
