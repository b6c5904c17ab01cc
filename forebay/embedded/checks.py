"""Checks what Airflow needs on this machine, each with what to do if it is missing."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from forebay.embedded.layout import Layout
from forebay.embedded.ports import LOOPBACK
from forebay.embedded.postgres.account import OWN, SHARED, SHARED_REMEDY, is_made_later
from forebay.embedded.postgres.place import Place, database_place, nearest_folder
from forebay.errors import ConfigError, ForebayError
from forebay.executors.link.sockets import sockets_problem
from forebay.home.privacy import exposed, mode_text, require_own
from forebay.home.store.base import STORE_NAME
from forebay.system.extras import missing_modules
from forebay.system.memory import available_bytes
from forebay.system.message import Message
from forebay.system.output.counted import counted

State = Literal["ok", "warning", "failure"]
PYTHONS = ((3, 11), (3, 14))
MACHINES = ("x86_64", "aarch64")
_GB = 1e9
DISK_LOW, DISK_SCARCE = 1 * _GB, 5 * _GB
# Airflow and PostgreSQL take 0.9 GB, a training job another 1.5 GB.
MEMORY_LOW, MEMORY_SCARCE = 1 * _GB, 2.5 * _GB
FILES_LOW = 1024
LOAD_PER_CORE_HIGH = 2.0


class Check(Message):
    """One finding.

    found: what was found. remedy: what to do about it; empty if it is fine.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


def all_checks(layout: Layout) -> list[Check]:
    """Everything that `forebay doctor` checks. Nothing is changed."""
    return [
        *essential_checks(layout),
        *_sockets(layout),
        *_privacy(layout),
        _extra("train", "warning", ", or name an interpreter that has it in `runtime.python`"),
        *_comfort(layout),
    ]


def essential_checks(layout: Layout) -> list[Check]:
    """What `forebay up` cannot do without."""
    return [
        _python(),
        _platform(),
        _extra("embedded", "failure"),
        _home(layout),
        _database_place(layout),
        *_disk(layout),
        _memory(),
        _ports(),
    ]


def _python() -> Check:
    first, beyond = PYTHONS
    fits = first <= sys.version_info[:2] < beyond
    remedy = f"install Python {first[0]}.{first[1]} or newer, below {beyond[0]}.{beyond[1]}"
    return _measured("python", "ok" if fits else "failure", platform.python_version(), remedy)


def _platform() -> Check:
    found = f"{platform.system()} {platform.release()} on {platform.machine()}"
    remedy = ""
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        remedy = f"run it on Linux ({' or '.join(MACHINES)}): in a container or virtual machine"
    elif not hasattr(os, "pidfd_open") or not Path("/proc/self/environ").exists():
        remedy = "use Linux 5.3 or newer with /proc mounted"
    return _measured("platform", "failure" if remedy else "ok", found, remedy)


def _extra(name: str, severity: State, otherwise: str = "") -> Check:
    missing = ", ".join(missing_modules(name))
    found = f"{sys.executable} has no {missing}" if missing else "installed"
    remedy = f"pip install 'forebay[{name}]'{otherwise}"
    return _measured(f"extra {name}", severity if missing else "ok", found, remedy)


def _home(layout: Layout) -> Check:
    folder, home = nearest_folder(layout.root), layout.home.root
    if _is_writable(folder):
        return _measured("home", "ok", str(home))
    remedy = f"make {folder} a folder that you can write to, or set FOREBAY_HOME to another one"
    return _measured("home", "failure", f"{home} cannot be written", remedy)


def _sockets(layout: Layout) -> Iterator[Check]:
    """Whether processes of a job can connect. If the home is not writable, its check says so."""
    folder = nearest_folder(layout.home.jobs)
    if not _is_writable(folder):
        return
    problem = sockets_problem(folder)
    found = problem or f"{folder} can hold Unix sockets"
    remedy = "set FOREBAY_HOME to a folder on a local file system"
    yield _measured("sockets", "failure" if problem else "ok", found, remedy)


def _is_writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _privacy(layout: Layout) -> Iterator[Check]:
    """Who can read what is stored; `up` and `run` close the home, the rest is up to its owner."""
    found = exposed(layout.home, *_folders_outside(layout))
    for one in found:
        severity: State = "failure" if one.severe else "warning"
        yield _measured("privacy", severity, f"{one.path}: {one.found}", one.remedy)
    if not found:
        mode = mode_text(layout.home.root)
        yield _measured("privacy", "ok", mode or "will be private to this user")
    store = os.environ.get(STORE_NAME, "")
    try:
        if store.startswith("/"):
            require_own(Path(store), STORE_NAME)
    except ConfigError as error:
        yield _measured("privacy", "failure", store, str(error))


def _folders_outside(layout: Layout) -> Iterator[Path]:
    """What belongs to a home but is not in its folder."""
    place = _place(layout)
    if place is not None:
        yield from (place.folder, place.socket)
    store = os.environ.get(STORE_NAME, "")
    if store.startswith("/"):
        yield Path(store)


def _place(layout: Layout) -> Place | None:
    """None if the database cannot be anywhere: its own check says why."""
    try:
        return database_place(layout)
    except ForebayError:
        return None


def _database_place(layout: Layout) -> Check:
    try:
        place = database_place(layout)
        place.check()
    except ForebayError as error:
        return _measured("database", "failure", "it cannot run here", str(error))
    if place.account is None:
        return _measured("database", "ok", str(place.data))
    if is_made_later(place.data):
        found = f"{place.data}, run by {OWN}, an account that `forebay up` creates"
        return _measured("database", "ok", found)
    shared: State = "warning" if place.account.name == SHARED else "ok"
    found = f"{place.data}, run by {place.account.name}"
    return _measured("database", shared, found, SHARED_REMEDY)


def _disk(layout: Layout) -> Iterator[Check]:
    folders, place = {"home": layout.root}, _place(layout)
    if place is not None:
        folders["database"] = place.folder
    for name, folder in folders.items():
        near = nearest_folder(folder)
        free = shutil.disk_usage(near).free
        state = _low(free, DISK_LOW, DISK_SCARCE)
        remedy = f"free some space on the disk of {near}"
        if name == "home":
            remedy += ", or set FOREBAY_HOME to a folder on another one"
        yield _measured(f"disk ({name})", state, f"{free / _GB:.1f} GB free", remedy)


def _memory() -> Check:
    free = float(available_bytes())
    remedy = "stop other programs, or give this machine or container more memory"
    found = f"{free / _GB:.1f} GB free"
    return _measured("memory", _low(free, MEMORY_LOW, MEMORY_SCARCE), found, remedy)


def _ports() -> Check:
    try:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            found = f"{LOOPBACK} has free ports, such as {probe.getsockname()[1]}"
    except OSError as error:
        remedy = "bring the loopback interface up (ip link set lo up)"
        return _measured("ports", "failure", str(error), remedy)
    return _measured("ports", "ok", found)


def _comfort(layout: Layout) -> Iterator[Check]:
    """What makes things slow or surprising."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    few = 0 <= files < FILES_LOW
    yield _measured(
        "open files", "warning" if few else "ok", str(files), f"raise it: ulimit -n {FILES_LOW}"
    )
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    busy = load > LOAD_PER_CORE_HIGH * cores
    yield _measured(
        "load",
        "warning" if busy else "ok",
        f"{load:.1f} on {counted(cores, 'core')}",
        "starting takes longer: wait until other programs have finished",
    )
    foreign = sorted(name for name in os.environ if name.startswith("AIRFLOW__"))
    yield _measured(
        "environment",
        "warning" if foreign else "ok",
        ", ".join(foreign) or "no settings of another Airflow",
        f"these do not affect the embedded Airflow, whose settings are in {layout.settings}",
    )


def _low(value: float, low: float, scarce: float) -> State:
    if value < low:
        return "failure"
    return "warning" if value < scarce else "ok"


def _measured(name: str, state: State, found: str, remedy: str = "") -> Check:
    return Check(name=name, state=state, found=found, remedy="" if state == "ok" else remedy)
