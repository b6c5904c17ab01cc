"""Files below one folder, local or behind fsspec: one recursive listing, and counted calls."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.sources.common.files.patterns import glob_regex, split_root
from forebay.datatasks.sources.common.files.remote import answering, file_system
from forebay.datatasks.sources.common.files.versions import version_text
from forebay.errors import DataError, InfrastructureError
from forebay.system.output.redaction import is_secret_name

_Inode = tuple[int, int]


def files_below(folder: str, is_hidden: Callable[[str], bool]) -> Iterator[os.DirEntry[str]]:
    """Everything but folders; nothing where the folder is gone.

    Real folders come before links to folders, so that names never depend on the order on disk. A
    link to a folder that has another name too brings its files once more, under that name. One
    that leads back, to a folder that it is in, brings nothing.

    is_hidden: names of folders that are left out.

    Raises:
        OSError: when the disk refuses.
    """
    links, known = deque([folder]), _above(folder)
    while links:
        top = links.popleft()
        inode = _inode_of(top)
        name = None if inode is None else known.get(inode)
        if name is not None and top.startswith(f"{name}/"):
            continue
        found: list[str] = []
        for path, files in _real_folders(top, is_hidden, found):
            if name is None and (inode := _inode_of(path)) is not None:
                known.setdefault(inode, path)
            yield from files
        if name is None:  # otherwise they were followed under its other name
            links.extend(sorted(found))


def _above(folder: str) -> dict[_Inode, str]:
    """Folders that a folder is in, by its own name or that of what it links to: all lead back."""
    real = Path(os.path.realpath(folder))  # as Path.resolve, but never an error
    found = map(_inode_of, map(os.fspath, {*Path(folder).parents, *real.parents}))
    return {inode: "" for inode in found if inode is not None}


def _real_folders(
    top: str, is_hidden: Callable[[str], bool], links: list[str]
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """A folder, all below it, and their files; folders behind links are added to `links`."""
    pending = [top]
    while pending:
        path = pending.pop()
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:
            continue
        shown = [entry for entry in entries if entry.is_dir() and not is_hidden(entry.name)]
        links += [entry.path for entry in shown if entry.is_symlink()]
        pending += [entry.path for entry in shown if not entry.is_symlink()]
        yield path, [entry for entry in entries if not entry.is_dir()]


def _inode_of(folder: str) -> _Inode | None:
    """Of a folder, by whatever name; None where it is gone."""
    try:
        info = Path(folder).stat()
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino


_VERSION_KEYS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")
# Of a local file behind fsspec: they change where a copy keeps size and time.
_STATE_KEYS = ("created", "ino")
_SHOWN = 5
_PLAN_AGAIN = "plan the window again"


class _Row(NamedTuple):
    path: str
    size_bytes: int
    version: str
    state: str
    inode: str


@dataclass(frozen=True)
class Listing:
    """Files, sorted by path relative to the folder.

    versions: see `forebay.datatasks.sources.common.files.versions`. states: what says that nobody
    has touched a file since, even where a copy kept its size and time; empty where nothing says it.
    inodes: equal for two names of one file; empty where nothing says it.
    """

    paths: pa.Array
    sizes: npt.NDArray[np.int64]
    versions: pa.Array
    states: pa.Array
    inodes: pa.Array

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, indices: npt.NDArray[np.int64]) -> Listing:
        chosen = pa.array(indices)
        return Listing(
            self.paths.take(chosen),
            self.sizes[indices],
            self.versions.take(chosen),
            self.states.take(chosen),
            self.inodes.take(chosen),
        )


def is_hidden(name: str) -> bool:
    """Whether a file or folder is bookkeeping: `_SUCCESS`, `_temporary`, `.part`; not `_day=1`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


class Files:
    """One place: a folder, a file or a glob. `calls` counts what the storage was asked."""

    def __init__(
        self, place: str, root: Path, storage: Mapping[str, Any], suffixes: Sequence[str]
    ) -> None:
        """Without a pattern, a folder stands for all files below it that end with one of these."""
        self.place = place
        self.calls = 0
        self._root = root
        self._storage = dict(storage)
        self._suffixes = suffixes

    @cached_property
    def _resolved(self) -> tuple[Any, str, str]:
        """File system (None for local paths), folder and regular expression."""
        folder, pattern = split_root(self.place)
        system: Any = None
        if "://" in self.place:
            system, folder = file_system(self.place, folder, self._storage)
        else:
            folder = os.fspath(self._root / folder)
        if not pattern and _is_file(system, folder):
            folder, _, name = folder.rpartition("/")
            return system, folder or "/", re.escape(name)
        ends = "|".join(map(re.escape, self._suffixes))
        regex = glob_regex(pattern) if pattern else f"{glob_regex('**/*')}(?:{ends})"
        return system, folder.rstrip("/") or "/", regex

    @property
    def _fs(self) -> Any:  # noqa: ANN401 - fsspec ships no types
        return self._resolved[0]

    @property
    def folder(self) -> str:
        """The place without its pattern; relative paths start here, those of row ids too."""
        return self._resolved[1]

    @property
    def identity(self) -> str:
        """Which files these are: place and options, for names of what is kept about them.

        Without secrets: a digest of them would let them be guessed, and a new key makes no new
        place.
        """
        storage = {k: v for k, v in self._storage.items() if not is_secret_name(k)}
        return json.dumps([self.folder, self.regex, storage], sort_keys=True, default=str)

    @property
    def regex(self) -> str:
        """What relative paths have to match."""
        return self._resolved[2]

    def full(self, relative: str) -> str:
        """A relative path as the file system knows it."""
        return f"{self.folder}/{relative}" if relative else self.folder

    def exists(self, relative: str) -> bool:
        self.calls += 1
        with answering(self.full(relative)):
            if self._fs is None:
                return Path(self.full(relative)).exists()
            self._fs.invalidate_cache()
            return bool(self._fs.exists(self.full(relative)))

    def listing(self, within: Sequence[str] = ("",), *, hidden: bool = False) -> Listing:
        """Every file below the folder, whatever its name; empty when the folder is not there.

        Args:
            within: folders below it, none in another, for the files in these alone.
            hidden: whether bookkeeping is listed too.
        """
        self.calls += len(within)
        look = self._locals if self._fs is None else self._find
        with answering(self.folder):
            rows = sorted(row for each in within for row in look(self.full(each), hidden=hidden))
        return Listing(
            pa.array([row[0] for row in rows], pa.string()),
            np.array([row[1] for row in rows], np.int64),
            pa.array([row[2] for row in rows], pa.string()),
            pa.array([row[3] for row in rows], pa.string()),
            pa.array([row[4] for row in rows], pa.string()),
        )

    def require_one_name(self, listing: Listing) -> None:
        """Refuse a file that has two names, each of which would bring its rows.

        Raises:
            DataError: which says both.
        """
        names: dict[str, str] = {}
        for path, inode in zip(listing.paths.to_pylist(), listing.inodes.to_pylist(), strict=True):
            if inode and (other := names.setdefault(inode, path)) != path:
                one, two = self.full(other), self.full(path)
                raise DataError(
                    f"{one} and {two} are the same file (a link): its rows would be trained twice; "
                    "remove one of the names, or narrow `path`; if they are to count twice, copy it"
                )

    def version(self, relative: str, way_out: str = _PLAN_AGAIN) -> str:
        """The version of one file now. way_out: what a person does when it is gone.

        Raises:
            DataError: when it is gone.
            InfrastructureError: when the storage does not answer.
        """
        place = self.full(relative)
        try:
            if self._fs is None:
                return _local_version(Path(place).stat())
            self._fs.invalidate_cache()
            return _remote_version(self._fs.info(place))
        except OSError as error:
            failure = read_failure(error, place, way_out)
            raise failure or InfrastructureError(f"{place}: {error}") from error

    @contextmanager
    def opened(self, relative: str) -> Iterator[Any]:
        """A path (local) or a file object that Arrow can read. Whoever plans counts the calls."""
        if self._fs is None:
            yield self.full(relative)
            return
        with self._fs.open(self.full(relative), "rb") as handle:
            yield handle

    def lies_there(self, listing: Listing) -> str:
        """One sentence: what the folder holds, for when nothing of it matched."""
        if not len(listing):
            there = self.exists("")
            return f"{self.folder} is empty" if there else f"{self.folder} does not exist"
        shown = ", ".join(listing.paths.slice(0, _SHOWN).to_pylist())
        more = f" and {len(listing) - _SHOWN} more" if len(listing) > _SHOWN else ""
        return f"{self.folder} contains {shown}{more}"

    def _locals(self, folder: str, *, hidden: bool) -> Iterator[_Row]:
        for entry in files_below(folder, is_hidden):
            if hidden or not is_hidden(entry.name):
                row = self._local(entry)
                if row is not None:
                    yield row

    def _local(self, entry: os.DirEntry[str]) -> _Row | None:
        try:
            info = entry.stat()
        except FileNotFoundError:
            if entry.is_symlink():
                raise DataError(f"{entry.path} is a broken link: remove it") from None
            return None  # renamed or removed since the folder was read
        if not stat.S_ISREG(info.st_mode):  # to open a pipe would wait for ever
            raise DataError(f"{entry.path} is not a file (a pipe, socket or device): move it away")
        relative, version = entry.path[len(self.folder) :].lstrip("/"), _local_version(info)
        try:
            relative.encode()
        except UnicodeEncodeError:
            raise DataError(f"{entry.path!a}: its name is not UTF-8: rename it") from None
        state = f"{version}|{info.st_ctime_ns}|{info.st_ino}"
        inode = f"{info.st_dev}:{info.st_ino}" if info.st_ino else ""
        return _Row(relative, info.st_size, version, state, inode)

    def _find(self, folder: str, *, hidden: bool) -> Iterator[_Row]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(folder, detail=True)
        except FileNotFoundError:
            return
        for path, info in found.items():
            relative = path[len(self.folder) :].removeprefix("/")  # one: others are of the key
            *folders, name = relative.split("/")
            if any(map(_is_hidden_key, folders)) or (_is_hidden_key(name) and not hidden):
                continue
            version = _remote_version(info)
            state = "|".join([version, *(str(info.get(key, "")) for key in _STATE_KEYS)])
            inode = str(info.get("ino") or "")
            yield _Row(relative, _size(info), version, state if "=" in version else "", inode)


def _is_hidden_key(part: str) -> bool:
    """In buckets `.` and `..` are names like others."""
    return part not in {".", ".."} and is_hidden(part)


def _local_version(info: os.stat_result) -> str:
    return version_text(info.st_size, "mtime_ns", info.st_mtime_ns)


def _remote_version(info: Mapping[str, Any]) -> str:
    change = next((key for key in _VERSION_KEYS if info.get(key)), "")
    value = info.get(change, "")
    # Some file systems list an instant as a number and say it as a datetime of one file.
    text = value.timestamp() if isinstance(value, datetime) else value
    return version_text(_size(info), change, text)


def _size(info: Mapping[str, Any]) -> int:
    return int(info.get("size") or 0)


def _is_file(system: Any, path: str) -> bool:  # noqa: ANN401 - fsspec ships no types
    with answering(path):
        return Path(path).is_file() if system is None else bool(system.isfile(path))


def arrow_file(opened: Any) -> pa.NativeFile:  # noqa: ANN401 - a path or a file object
    if isinstance(opened, str):
        return pa.OSFile(opened, "rb")
    return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, mode="r")


def read_failure(
    error: Exception, place: str, way_out: str = _PLAN_AGAIN
) -> DataError | InfrastructureError | None:
    """The error to raise when a file cannot be opened or read; None when its content is bad.

    way_out: what a person does when it is gone.
    """
    if isinstance(error, FileNotFoundError):
        return DataError(f"{place} was planned but is gone: {way_out}")
    if isinstance(error, OSError) and error.errno not in {None, errno.EINVAL}:
        return InfrastructureError(f"{place}: {error}")
    return None


# Names in damaged files are no texts.
READ_ERRORS: tuple[type[Exception], ...] = (
    pa.ArrowException,
    MemoryError,
    UnicodeDecodeError,
    OSError,
)
