"""Chooses who runs PostgreSQL when root calls: it refuses to run as root.

It is an account that runs nothing else, so that no other program can read the data or stop the
server.
"""

from __future__ import annotations

import logging
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import InfrastructureError

# The account that a PostgreSQL package creates, and the one that we create otherwise.
PACKAGED, OWN = "postgres", "forebay-postgres"
# Shared with whatever else runs as this user: the last resort.
SHARED = "nobody"
_TOOL_SECONDS = 30.0
_TOOL_FOLDERS = "/usr/sbin:/sbin"
SHARED_REMEDY = (
    f"other programs may run as {SHARED} too: add an account for it (useradd --system {OWN}), then "
    "`forebay down` and `forebay up`"
)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int


def account_for_root(data: Path) -> Account:
    """The owner of the data, if it has its own; otherwise the best account that exists.

    Raises:
        InfrastructureError: when this machine has no account for it at all.
    """
    owner = _owner(data)
    if owner is not None and owner.uid != 0 and owner.name != SHARED:
        return owner
    for name in (PACKAGED, OWN, SHARED):
        if (found := _account(name)) is not None:
            return found
    raise InfrastructureError(
        f"PostgreSQL does not run as root, and this machine has no account {PACKAGED}, {OWN} or "
        f"{SHARED}: add one (useradd --system {OWN}), or run forebay as a user other than root"
    )


def make_account(data: Path) -> str | None:
    """Create an account if there is only a shared one; returns a message for people.

    Only root can. None, and no account is created, if the data or the machine already has one.
    """
    if not _is_wanted(data):
        return None
    tool = _useradd()
    if tool is None:
        return _without("this machine has no useradd")
    shell = shutil.which("nologin", path=_TOOL_FOLDERS) or "/bin/false"
    how = ("--system", "--user-group", "--no-create-home", "--home-dir", "/", "--shell", shell)
    try:
        ran = subprocess.run(
            [tool, *how, OWN],
            capture_output=True,
            text=True,
            timeout=_TOOL_SECONDS,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _without(str(error))
    if _account(OWN) is None:
        return _without(ran.stderr.strip() or f"{tool} ended with exit code {ran.returncode}")
    return (
        f"created the account {OWN} to run PostgreSQL, which refuses to run as root "
        f"(userdel {OWN} removes it)"
    )


def is_made_later(data: Path) -> bool:
    """Whether the next start will create the account: no server has run yet, and it can try."""
    return _is_wanted(data) and not data.exists() and _useradd() is not None


def hand_over(folder: Path, account: Account) -> None:
    """Make an account the owner of a folder and of everything in it. Follows no links.

    For data of a server that ran as another account, or that root restored from a backup. A file
    with a second hard link elsewhere stays as it is, unless it belonged to the folder's owner:
    whoever can write here must not gain others' files by linking them.
    """
    before = folder.lstat().st_uid
    changed = 0
    # The folder itself comes last: if this is killed in between, the next call knows who owned it.
    for _, _, files, descriptor in os.fwalk(folder, topdown=False):
        changed += sum(_hand_over_file(name, descriptor, before, account) for name in files)
        if os.fstat(descriptor).st_uid != account.uid:
            os.fchown(descriptor, account.uid, account.gid)
    if changed:
        _LOG.info("%s: handed over %d files to %s", folder, changed, account.name)


def _hand_over_file(name: str, folder: int, before: int, account: Account) -> bool:
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        is_theirs = found.st_nlink == 1 or found.st_uid == before != 0
        if found.st_uid == account.uid or stat.S_ISLNK(found.st_mode) or not is_theirs:
            return False
        os.chown(f"/proc/self/fd/{descriptor}", account.uid, account.gid)
        return True
    finally:
        os.close(descriptor)


def _is_wanted(data: Path) -> bool:
    try:
        return account_for_root(data).name == SHARED
    except InfrastructureError:
        return True


def _without(why: str) -> str:
    return (
        f"warning: no account could be created for PostgreSQL ({why}), so it runs as {SHARED}: "
        f"{SHARED_REMEDY}"
    )


def _useradd() -> str | None:
    folders = (os.environ.get("PATH", os.defpath), _TOOL_FOLDERS)
    return shutil.which("useradd", path=os.pathsep.join(folders))


def _account(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _owner(path: Path) -> Account | None:
    """None if there is nothing, or its owner has no name."""
    try:
        entry = pwd.getpwuid(path.stat().st_uid)
    except (FileNotFoundError, KeyError):
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
