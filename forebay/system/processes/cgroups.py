"""CPU quotas and memory limits for processes, by Linux control groups of version 1 or 2.

The kernel's rules: `Documentation/admin-guide/cgroup-v1` and `cgroup-v2.rst`. Groups are made where
the limits on this process hold for them too. Memory counts where a process was when it took it, so
a process is added right after its start.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from forebay.errors import InfrastructureError
from forebay.system.files.locks import closed_after

_LOG = logging.getLogger(__name__)
_MOUNTED, _MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_CONTROLLERS = frozenset({"memory", "cpu", "cpuacct"})
_PERIOD_US = 100_000  # what the kernel gives a new group
# By version.
_PER_SECOND = {1: 1e9, 2: 1e6}
_UNLIMITED = {1: "-1", 2: "max"}
_MEMORY_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_SWAP_LIMIT = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
# A group is in use for a moment after its last process ended.
_REMOVAL_SECONDS = 1.0
# By figure: the controller, then for versions 1 and 2 the file, and the first word of its line.
_FIGURES: Mapping[str, tuple[str, tuple[str, str], tuple[str, str]]] = {
    "cpu": ("cpuacct", ("cpuacct.usage", ""), ("cpu.stat", "usage_usec")),
    "throttled": ("cpu", ("cpu.stat", "throttled_time"), ("cpu.stat", "throttled_usec")),
    "taken": ("memory", ("memory.usage_in_bytes", ""), ("memory.current", "")),
    "swapped": ("memory", ("memory.stat", "total_swap"), ("memory.swap.current", "")),
    "files": ("memory", ("memory.stat", "total_active_file"), ("memory.stat", "active_file")),
    "idle": ("memory", ("memory.stat", "total_inactive_file"), ("memory.stat", "inactive_file")),
    "slab": ("memory", ("memory.stat", "slab_reclaimable"), ("memory.stat", "slab_reclaimable")),
    "peak": ("memory", ("memory.max_usage_in_bytes", ""), ("memory.peak", "")),
    "kills": ("memory", ("memory.oom_control", "oom_kill"), ("memory.events", "oom_kill")),
}


class GroupUsage(NamedTuple):
    """What a group used since it was made; a figure is None where the kernel does not tell it.

    throttled_seconds: summed over processors. memory_bytes: in use now, as `limit_memory` counts
    it. memory_peak_bytes: with files that were read, so a peak at the limit is no want of memory.
    oom_kills: processes of the group that the kernel killed, whoever's memory ran out.
    """

    cpu_seconds: float | None
    throttled_seconds: float | None
    memory_bytes: int | None
    memory_peak_bytes: int | None
    oom_kills: int | None


class _Place(NamedTuple):
    """Where a controller is used; `refusal` says in words why it is not."""

    version: int
    folder: Path
    refusal: str = ""


@dataclass(frozen=True)
class _Places:
    places: Mapping[str, _Place]

    def folders(self) -> set[Path]:
        """Those of all controllers that can be used, which may share one."""
        return {place.folder for place in self.places.values() if not place.refusal}


class ControlGroups(_Places):
    """Makes groups, with those controllers that can be used here."""

    @classmethod
    def found(cls, mounted: Path = _MOUNTED, membership: Path = _MEMBERSHIP) -> ControlGroups:
        """What this machine, its mounts and this user's rights allow."""
        own: dict[str, str] = {}  # version 2 has the empty name
        for line in (_text(membership) or "").splitlines():
            _, names, path = line.split(":", 2)
            own.update(dict.fromkeys(names.split(","), path))
        first = {name: _first(mounted, name, own[name]) for name in _CONTROLLERS & own.keys()}
        return cls({**_second(mounted, own.get(""), _CONTROLLERS - own.keys()), **first})

    @property
    def cpu_refusal(self) -> str:
        """Why CPU cannot be limited; empty if it can."""
        return self.places["cpu"].refusal

    @property
    def memory_refusal(self) -> str:
        """Why memory cannot be limited; empty if it can."""
        return self.places["memory"].refusal

    def make(self, name: str) -> ControlGroup:
        """A fresh group `forebay-<name>`, in place of an empty one that was left.

        Raises:
            InfrastructureError: when the one that was left holds processes.
        """
        made = {}
        for controller, place in self.places.items():
            folder = place.folder / f"forebay-{name}"
            made[controller] = _Place(place.version, folder, place.refusal or _make_refusal(folder))
        return ControlGroup(made)

    def remove_left(self, prefix: str) -> None:
        """Remove groups `forebay-<prefix>*` that a killed process left, but for those in use.

        A group that was just made is not in use yet: the prefix has to be the caller's alone.
        """
        for folder in self.folders():
            for left in folder.glob("forebay-*"):
                if left.name.startswith(f"forebay-{prefix}"):
                    _LOG.info(_removal_refusal(left, 0.0) or f"removed {left}, which was left")


class ControlGroup(_Places):
    """One group, in each hierarchy that can be used. Whoever may can remove it at any time."""

    def add(self, pid: int) -> str:
        """Move a process in, unless it has ended. Why it cannot be moved; empty if it was.

        Children that it starts from then on are in the group too; those that it has are not.
        """
        writes = (_write_refusal(each / "cgroup.procs", str(pid)) for each in self.folders())
        return next(filter(None, writes), "")

    def limit_memory(self, memory_bytes: int | None) -> str:
        """Limit memory, without swap, or lift the limit. Why it cannot be; empty if it was.

        The limit may not be below what is in use: memory of processes, of tmpfs and of the kernel,
        swapped out or not. Files that were read are not in use: they give way, which may take
        seconds. If the group grows meanwhile, version 1 refuses and version 2 kills a process.
        """
        used_bytes = self._used_bytes()
        if memory_bytes is not None and used_bytes is not None and used_bytes > memory_bytes:
            return f"{math.ceil(used_bytes / 2**20)} MiB are in use"
        version, folder, _ = self.places["memory"]
        swap_limit = _text(folder / _SWAP_LIMIT[version])
        return self._write("memory", memory_writes(version, memory_bytes, swap_limit))

    def limit_cpu(self, cores: float | None) -> str:
        """Limit CPU time (0.01 cores or more), or lift it. Why it cannot be; empty if it was."""
        version = self.places["cpu"].version
        quota = _UNLIMITED[version] if cores is None else f"{round(cores * _PERIOD_US)}"
        of_second = {"cpu.max": f"{quota} {_PERIOD_US}"}
        return self._write("cpu", of_second if version == 2 else {"cpu.cfs_quota_us": quota})

    def usage(self) -> GroupUsage | None:
        """What it used; None if it has vanished, or no controller can be used."""
        if not any(os.access(folder, os.F_OK) for folder in self.folders()):
            return None
        return GroupUsage(
            cpu_seconds=self._seconds("cpu"),
            throttled_seconds=self._seconds("throttled"),
            memory_bytes=self._used_bytes(),
            memory_peak_bytes=self._figure("peak"),
            oom_kills=self._figure("kills"),
        )

    def remove(self) -> None:
        """Remove it, once its processes have ended; one that stays is logged."""
        for folder in self.folders():
            if reason := _removal_refusal(folder, _REMOVAL_SECONDS):
                _LOG.warning(reason)

    def _write(self, controller: str, writes: Mapping[str, str]) -> str:
        _, folder, refusal = self.places[controller]
        results = (_write_refusal(folder / name, text) for name, text in writes.items())
        return refusal or next(filter(None, results), "")

    def _used_bytes(self) -> int | None:
        if (taken := self._figure("taken")) is None:
            return None
        give_way = sum(self._figure(name) or 0 for name in ("files", "idle", "slab"))
        # Figures are of different moments.
        return max(0, taken + (self._figure("swapped") or 0) - give_way)

    def _seconds(self, name: str) -> float | None:
        ticks, place = self._figure(name), self.places[_FIGURES[name][0]]
        return None if ticks is None else ticks / _PER_SECOND[place.version]

    def _figure(self, name: str) -> int | None:
        controller, *files = _FIGURES[name]
        version, folder, refusal = self.places[controller]
        file, line = files[version - 1]
        return None if refusal else _number(folder / file, line)


def memory_writes(version: int, memory_bytes: int | None, swap_limit: str | None) -> dict[str, str]:
    """What to write, in order, to limit memory to so much without swap.

    swap_limit: as it is now; None if there is no such limit here. That of version 1 is on memory
    and swap, and may at no time be below that on memory.
    """
    limit = _UNLIMITED[version] if memory_bytes is None else f"{memory_bytes}"
    without_swap = limit if version == 1 or memory_bytes is None else "0"
    writes = [(_SWAP_LIMIT[version], without_swap), (_MEMORY_LIMIT[version], limit)]
    if swap_limit is None:
        return dict(writes[1:])
    is_down = version == 1 and memory_bytes is not None and memory_bytes <= int(swap_limit)
    return dict(reversed(writes) if is_down else writes)


def _first(mounted: Path, controller: str, path: str) -> _Place:
    """Version 1: a hierarchy's folder is named by all its controllers; links may name one."""
    named = (each for each in mounted.glob("*") if controller in each.name.split(","))
    own = _own_group(next(named, mounted / controller).resolve(), path)
    if own is None:
        return _Place(1, mounted, f"no group of this process for {controller} is below {mounted}")
    return _Place(1, own, "" if os.access(own, os.W_OK) else f"{own} is not writable by this user")


def _second(mounted: Path, path: str | None, wanted: frozenset[str]) -> dict[str, _Place]:
    """Version 2: one folder for all controllers, as a process is in one group.

    A group that processes are in gives its children no controllers, so the folder is mostly above.
    """
    root = mounted if os.access(mounted / "cgroup.controllers", os.F_OK) else mounted / "unified"
    own = None if path is None else _own_group(root, path)
    if own is None:
        return {name: _Place(2, root, "not Linux with control groups") for name in wanted}
    best, given = root, frozenset[str]()
    why = "no control group of version 2 above this process that this user can write gives its"
    for folder in (own, *own.parents[: len(own.parts) - len(root.parts)]):
        offered = wanted.intersection((_text(folder / "cgroup.subtree_control") or "").split())
        writable = all(os.access(each, os.W_OK) for each in (folder, folder / "cgroup.procs"))
        if writable and len(offered) > len(given):
            best, given = folder, offered
        if any((_text(folder / name) or "max")[:3] != "max" for name in ("memory.max", "cpu.max")):
            why = f"{folder}, whose limits hold for this process, does not give its"
            break
    used = given | {"cpuacct"} if given else given
    refusals = {name: f"{why} children the controller {name}" for name in wanted - used}
    return {name: _Place(2, best, refusals.get(name, "")) for name in wanted}


def _own_group(root: Path, path: str) -> Path | None:
    """In a container the path may be the host's, and the mount begin at the group itself."""
    own = root / path.lstrip("/")
    if ".." not in own.parts and os.access(own / "cgroup.procs", os.F_OK):
        return own
    return root if str(os.getpid()) in (_text(root / "cgroup.procs") or "").split() else None


def _make_refusal(folder: Path) -> str:
    """Make a group, also in place of one that was just made for another controller."""
    if reason := _removal_refusal(folder, _REMOVAL_SECONDS):
        raise InfrastructureError(f"{reason}; end what {folder}/cgroup.procs names")
    try:
        folder.mkdir()
    except OSError as error:
        return f"control group {folder} cannot be made: {error.strerror}"
    return ""


def _write_refusal(path: Path, text: str) -> str:
    """Write to a file that exists; why it cannot be written, else empty."""
    try:
        with closed_after(os.open(path, os.O_WRONLY | os.O_TRUNC)) as descriptor:
            os.write(descriptor, text.encode())
    except ProcessLookupError:
        return ""  # it has ended: there is nothing to move
    except OSError as error:
        words = "out of range, or more than a group above it has"
        why = words if error.errno == errno.EINVAL else error.strerror
        return f"{path} does not take {text}: {why}"
    return ""


def _removal_refusal(folder: Path, wait_seconds: float) -> str:
    """Remove a group if it is there; why it cannot be, also after this time, else empty."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            folder.rmdir()
            return ""
        except FileNotFoundError:
            return ""
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= deadline:
                return f"control group {folder} cannot be removed: {error.strerror}"
            time.sleep(0.02)


def _number(path: Path, line: str) -> int | None:
    """What a file says, or its line with this first word; None if there is none."""
    words = (_text(path) or "").split()
    if not line:
        return int(words[0]) if words else None
    return int(words[words.index(line) + 1]) if line in words else None


def _text(path: Path) -> str | None:
    """None if it cannot be read: it may vanish at any time, and kernels differ."""
    try:
        return path.read_text()
    except OSError:
        return None
