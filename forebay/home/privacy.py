"""The home is its owner's alone: made so, closed where it is not, or refused.

A group that shares a home does so on purpose, by its mode (0750, say), and stays let in. Others
never are: a mode that lets them in usually comes from a umask, and nobody meant it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from forebay.errors import ConfigError, InfrastructureError
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.files import PRIVATE_FOLDER, make_folder, writing

OTHERS = 0o007
_GROUP = 0o070
_GROUP_WRITES = 0o020


class Exposed(NamedTuple):
    """What users can get at who should not, and what to do. severe: nothing of ours corrects it."""

    path: Path
    found: str
    remedy: str
    severe: bool = False


def make_home(home: Home) -> None:
    """Make the folder of a home, for its user alone; one that is there stays as it is.

    Raises:
        ConfigError: when it is a link to what is not there.
    """
    if home.root.is_symlink() and not home.root.exists():
        raise ConfigError(
            f"{home.root} is a link to {home.root.readlink()}, which is not there: make that "
            f"folder, or set {ENVIRONMENT_NAME} to another one"
        )
    make_folder(home.root, PRIVATE_FOLDER)


def close_home(home: Home) -> str:
    """Make the home, or close it to other users where it is open to them.

    Returns:
        What was changed, for people; empty where nothing was.

    Raises:
        ConfigError: when it is open and belongs to somebody else, or is no folder.
        InfrastructureError: when its file system keeps no modes.
    """
    make_home(home)
    with writing(home.root):
        # By descriptor: what is looked at is what is changed, whatever a link says meanwhile.
        descriptor = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return _closed(home.root, descriptor)
        finally:
            os.close(descriptor)


def _closed(root: Path, descriptor: int) -> str:
    found = os.fstat(descriptor)
    if not found.st_mode & OTHERS:
        return ""
    if found.st_uid != os.geteuid():
        raise ConfigError(_others_home(root, found))
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~(OTHERS | _GROUP))
    now = os.fstat(descriptor)
    if now.st_mode & OTHERS:
        raise InfrastructureError(
            f"{root} is open to other users (mode {_mode(now)}), and its file system keeps no "
            f"modes: mount it for this user alone, or set {ENVIRONMENT_NAME} to another disk"
        )
    return f"{root} was open to other users (mode {_mode(found)}): it is {_mode(now)} now"


def exposed(home: Home, *more: Path) -> list[Exposed]:
    """Everything of a home that other users can get at. Nothing is changed.

    more: folders outside of the home that belong to it: others must not be able to list them.
    """
    found = [*_open_root(home)]
    ours = (home.root / "kafka", home.root / "airflow" / "postgres", home.store)
    for folder in dict.fromkeys((*ours, *more)):
        found += _open_folder(folder)
    for path in _private_files(home):
        found += _open_file(path)
    return found


def mode_text(folder: Path) -> str:
    """Who is let in by a folder's mode; empty where there is none."""
    status = _status(folder)
    if status is None:
        return ""
    shared = status.st_mode & _GROUP
    who = f", shared with its group, {_group(status.st_gid)}" if shared else ", its user alone"
    return f"{folder} has mode {_mode(status)}{who}"


def _open_root(home: Home) -> Iterator[Exposed]:
    status = _status(home.root)
    if status is None:
        return
    mode = _mode(status)
    if status.st_mode & OTHERS and status.st_uid != os.geteuid():
        yield Exposed(home.root, f"mode {mode}", _others_home(home.root, status), severe=True)
    elif status.st_mode & OTHERS:
        remedy = f"chmod 700 {home.root} (`forebay up` and `forebay run` do it)"
        yield Exposed(home.root, f"every user can get in (mode {mode})", remedy)
    elif status.st_mode & _GROUP_WRITES:
        remedy = f"chmod g-w {home.root}: a group may read a home, one user writes to it"
        yield Exposed(home.root, f"its group can replace what is in it (mode {mode})", remedy)


def _open_folder(folder: Path) -> Iterator[Exposed]:
    status = _status(folder)
    if status is not None and status.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        remedy = f"chmod o= {folder}, or let a group in instead (chgrp, chmod 750)"
        yield Exposed(folder, f"every user can list it (mode {_mode(status)})", remedy)


def _open_file(path: Path) -> Iterator[Exposed]:
    status = _status(path)
    if status is not None and status.st_mode & (OTHERS | _GROUP):
        remedy = f"chmod 600 {path}"
        yield Exposed(path, f"not for its user alone (mode {_mode(status)})", remedy)


def _private_files(home: Home) -> Iterator[Path]:
    for folder, pattern in (
        (home.jobs, "*/job.json"),
        (home.jobs, "*/token*"),
        (home.root / "training", "*/*/*/g*/dead/*.jsonl"),
    ):
        if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
            yield from folder.glob(pattern)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # what is not there, and what this user cannot see, is its owner's to look at


def _others_home(root: Path, found: os.stat_result) -> str:
    owner = _name(found.st_uid)
    return (
        f"{root} belongs to {owner} and is open to every user of this machine (mode "
        f"{_mode(found)}), and what is kept there is for one user alone: have {owner} close it "
        f"(chmod 700 {root}), or set {ENVIRONMENT_NAME} to a folder of your own"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"group {gid}"


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"
