"""A home is private to its owner: created private, closed if it is open, or refused.

A group that shares a home does so on purpose, by its mode (0750, say), and keeps its access. Others
never get access: a mode that lets them in usually comes from a umask, unintentionally. Whoever owns
a home, or a folder above it, can replace everything in it, including the interpreters of jobs.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from forebay.errors import ConfigError, InfrastructureError
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.files.durable import PRIVATE_FOLDER, make_folder, writing
from forebay.system.files.locks import closed_after

OTHERS = 0o007
_GROUP = 0o070
_GROUP_WRITES = 0o020


class Exposed(NamedTuple):
    """What users can access but should not, and what to do. severe: no command corrects it."""

    path: Path
    found: str
    remedy: str
    severe: bool = False


def make_home(home: Home) -> None:
    """Create the folder of a home, private to its user; an existing one stays as it is.

    Raises:
        ConfigError: when it cannot be one.
    """
    require_folder(home)
    make_folder(home.root, PRIVATE_FOLDER)


def require_folder(home: Home) -> None:
    """Refuse a home that is not a folder, or is below something that is not. Creates nothing.

    Raises:
        ConfigError: when it is refused, saying what to do.
    """
    ways_out = f"or set {ENVIRONMENT_NAME} to another one"
    there = next(each for each in (home.root, *home.root.parents) if os.path.lexists(each))
    if there.is_dir():
        return
    if there.is_symlink():
        target = f"{there} is a link to {there.readlink()}, which does not exist"
        raise ConfigError(f"{target}: create that folder, {ways_out}")
    raise ConfigError(f"{there} is not a folder: move it away, {ways_out}")


def close_home(home: Home) -> str:
    """Create a home, or close it to others; what was changed, for people: empty if nothing was.

    Raises:
        ConfigError: when it belongs to somebody else, or is not a folder.
        InfrastructureError: when its file system does not keep modes.
    """
    make_home(home)
    root, flags = home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    # By descriptor: what is checked is what is changed, even if a link changes meanwhile.
    with writing(root), closed_after(os.open(root, flags)) as descriptor:
        found = os.fstat(descriptor)
        if problem := _others_home(root, found):
            raise ConfigError(problem)
        if not found.st_mode & OTHERS:
            return ""
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~(OTHERS | _GROUP))
        now = os.fstat(descriptor)
    if now.st_mode & OTHERS:
        raise InfrastructureError(
            f"{root} is open to other users (mode {_mode(now)}), and its file system does not keep "
            f"modes: mount it for this user only, or set {ENVIRONMENT_NAME} to another disk"
        )
    return f"{root} was open to other users (mode {_mode(found)}): its mode is {_mode(now)} now"


def require_own(folder: Path, setting: str) -> None:
    """Refuse another user's folder: its owner could replace everything that is read from it.

    A folder that does not exist yet is created by whoever writes to it first. `setting` names it.

    Raises:
        ConfigError: when it is refused, saying what to do.
    """
    status = _status(folder)
    if status is None or status.st_uid in _trusted():
        return
    owner, me = _name(status.st_uid), _name(os.geteuid())
    raise ConfigError(
        f"{setting}: {folder} belongs to {owner}, who can change what {me} trains and serves: set "
        f"{setting} to a folder of your own, run as {owner}, or, as root, take it over if nobody "
        f"else wrote to it (chown -R {os.geteuid()} {quote(str(folder))})"
    )


def exposed(home: Home, *more: Path) -> list[Exposed]:
    """Everything in a home that other users can access. Nothing is changed.

    more: folders outside of the home that belong to it: others must not be able to list them.
    """
    found = [*_open_root(home.root)]
    ours = (home.root / "kafka", home.root / "airflow" / "postgres", home.store)
    for folder in dict.fromkeys((*ours, *more)):
        if mode := _open_mode(folder, stat.S_IROTH | stat.S_IWOTH):
            remedy = f"chmod o= {quote(str(folder))}, or let a group in instead (chgrp, chmod 750)"
            found.append(Exposed(folder, f"every user can list it (mode {mode})", remedy))
    for path in _private_files(home):
        if mode := _open_mode(path, OTHERS | _GROUP):
            remedy = f"chmod 600 {quote(str(path))}"
            found.append(Exposed(path, f"not private to its user (mode {mode})", remedy))
    return found


def mode_text(folder: Path) -> str:
    """Who has access by a folder's mode; empty if there is no folder."""
    status = _status(folder)
    if status is None:
        return ""
    shared = status.st_mode & _GROUP
    who = f", shared with its group, {_group(status.st_gid)}" if shared else ", private to its user"
    return f"{folder} has mode {_mode(status)}{who}"


def _open_root(root: Path) -> Iterator[Exposed]:
    status = _status(root)
    if status is None:
        return
    mode = _mode(status)
    if problem := _others_home(root, status):
        yield Exposed(root, f"mode {mode}", problem, severe=True)
    elif status.st_mode & OTHERS:
        remedy = f"chmod 700 {quote(str(root))} (`forebay up` and `forebay run` do it)"
        yield Exposed(root, f"every user can enter it (mode {mode})", remedy)
    elif status.st_mode & _GROUP_WRITES:
        remedy = (
            f"chmod g-w {quote(str(root))}: a group may read a home, only its user writes to it"
        )
        yield Exposed(root, f"its group can replace what is in it (mode {mode})", remedy)
    yield from _open_way(root)


def _open_way(root: Path) -> Iterator[Exposed]:
    """Folders above a home in which somebody else can replace it."""
    for folder in root.resolve().parents:
        status = _status(folder)
        if status is None:
            continue
        owner = status.st_uid
        if owner not in _trusted():
            remedy = f"set {ENVIRONMENT_NAME} to a folder below your own, or run as {_name(owner)}"
            yield Exposed(folder, f"{_name(owner)} can put another home in its place", remedy)
        elif status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            found = f"every user can put another home in its place (mode {_mode(status)})"
            yield Exposed(folder, found, f"chmod o-w {quote(str(folder))}")


def _open_mode(path: Path, bits: int) -> str:
    """The mode of what has one of these bits; empty if it has none, or is not there."""
    status = _status(path)
    return _mode(status) if status is not None and status.st_mode & bits else ""


def _private_files(home: Home) -> Iterator[Path]:
    for folder, pattern in (
        (home.jobs, "*/job.json"),
        (home.jobs, "*/token*"),
        (home.training, "*/*/*/g*/dead/*.jsonl"),
    ):
        if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
            yield from folder.glob(pattern)


def _status(path: Path) -> os.stat_result | None:
    # Not there, or not visible to this user: its owner has to check it.
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return path.stat()
    return None


def _others_home(root: Path, found: os.stat_result) -> str:
    """Why a home that belongs to somebody else must not be used; empty if it may be used."""
    mine = found.st_uid == os.geteuid()
    if mine or (found.st_uid in _trusted() and not found.st_mode & OTHERS):
        return ""
    owner, me = _name(found.st_uid), _name(os.geteuid())
    opened = "; it is also open to every user of this machine" if found.st_mode & OTHERS else ""
    place = quote(str(root))
    return (
        f"{root} (mode {_mode(found)}) belongs to {owner}, who can change what {me} runs and "
        f"trains{opened}: set {ENVIRONMENT_NAME} to a folder of your own, run as {owner}, or, as "
        f"root, take it over if nobody else wrote to it (chown -R {os.geteuid()} {place} && "
        f"chmod 700 {place})"
    )


def _trusted() -> tuple[int, ...]:
    """Who may own a home and the folders above it: this user, and root, who can do anything."""
    return os.geteuid(), 0


def _name(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"


def _group(gid: int) -> str:
    with suppress(KeyError):
        return grp.getgrgid(gid).gr_name
    return f"group {gid}"


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"
