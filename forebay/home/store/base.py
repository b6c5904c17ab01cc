"""The store of a home: large data that never changes, each item under its own name.

Bytes are stored first, durably and with a checksum; the row that names them second. Nothing is
overwritten: a name is used once. What no row names is garbage.

A folder by default; FOREBAY_STORE names another folder, or a bucket. Light, because DAG files that
Airflow parses import this module: the kinds of store are imported when one is opened.
"""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from forebay.errors import DataError
from forebay.system.message import Message

STORE_NAME = "FOREBAY_STORE"
# Below the root of a store that may be shared; no name begins like that.
OWNER_NAME = ".home"


class Stored(Message):
    """What is in the store. name: below its root.

    A file: checksum is the SHA-256 of its bytes, size_bytes their number. A tree: checksum is the
    SHA-256 of the index of its files, size_bytes what the files hold together.
    """

    name: str
    checksum: str
    size_bytes: int


class Leftover(Message):
    """What a writer began and did not finish, or a removal. changed_at: microseconds since 1970."""

    name: str
    changed_at: int


class Store(ABC):
    """Files and trees of one home, for any number of threads, processes and hosts.

    A name is visible once all that belongs to it is durable. Each method raises
    InfrastructureError when the store is full, refuses, or cannot be reached in time; the error
    names the place and says what to do. The caller's bytes are untouched then, and the call can be
    repeated: what it left is a leftover.

    knows_writers: whether `leftovers` omits what a living process of this host writes.
    """

    knows_writers: ClassVar[bool]

    @abstractmethod
    def put(self, folder: str, stem: str, content: bytes | memoryview) -> Stored:
        """Store bytes under a new name; on return they are durable.

        folder: where they go, as names separated by slashes.
        stem: what the name begins with, for people who look at it. Any text.
        """

    @abstractmethod
    def put_tree(self, folder: str, stem: str, source: Path) -> Stored:
        """Store a folder with everything below it under a new name; on return it is durable.

        The files of `source` must not change, now or later: a store on the same file system
        hard-links them. The source itself may be removed.

        source: holds files and folders, and no links.

        Raises:
            DataError: when the source is not a folder, or holds something else.
        """

    @abstractmethod
    def path(self, stored: Stored) -> Path:
        """A local file with the content, verified. It must not be changed.

        Raises:
            DataError: when the content is missing, or not as it was stored.
        """

    @abstractmethod
    def tree(self, stored: Stored) -> Path:
        """A local folder with the content of a tree, verified. It must not be changed.

        Raises:
            DataError: when part of it is missing, or not as it was stored; the error names it.
        """

    @abstractmethod
    def verify(self, stored: Stored) -> None:
        """Read all of the content where it is kept, and compare it with what was stored.

        Raises:
            DataError: when part of it is missing or damaged, or when it has another size.
        """

    @abstractmethod
    def is_there(self, stored: Stored) -> bool:
        """Whether the name is in the store. Cheap: the content is not read."""

    @abstractmethod
    def url(self, stored: Stored) -> str:
        """Where the content is, for people and servers of models: a path, or an s3:// URL."""

    @abstractmethod
    def owner(self) -> str | None:
        """The id of the home that owns the store; None if no home has claimed it."""

    @abstractmethod
    def claim(self, home_id: str) -> None:
        """Record which home owns the store. Only for a store without an owner."""

    @abstractmethod
    def owner_url(self) -> str:
        """Where the owner is recorded, for people."""

    @abstractmethod
    def names(self, folder: str = "") -> Iterator[str]:
        """Every name in the store, a tree as one name; read lazily, in pages.

        folder: only names of what was put there, as it was given to `put`.
        """

    @abstractmethod
    def leftovers(self, folder: str = "") -> Iterator[Leftover]:
        """What is half written. Where a store does not know its writers, judge by age.

        folder: see `names`.
        """

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove names, and leftovers that nobody is writing. Missing ones count as removed.

        A tree disappears whole; a process that dies meanwhile leaves a leftover.

        Raises:
            DataError: when something is not a name in a store; nothing is removed then.
        """


# A name is FOLDER/STEM-ID, and that of a tree FOLDER/STEM-ID.tree, where ID has 32 hexadecimal
# digits and is never used again. No part of a folder ends like that.

TREE_SUFFIX = ".tree"
# What a home's names begin with. Anything else below a store's root is not its own: a store of
# another home may be there.
PLANS, LISTINGS, MODELS = FOLDERS = ("plans", "listings", "models")
WRITING_NAME = ".writing"  # in a store in a folder: what has no name yet
_ODD = re.compile(r"[^A-Za-z0-9_.=-]+")
_ID = re.compile(r"-[0-9a-f]{32}(?:\.tree)?$")
_PLAIN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*")
_PART_CHARACTERS = 120  # with the id after it, far below the limit of file systems


def new_name(folder: str, stem: str, *, tree: bool = False) -> str:
    """A new name that was never used. Odd characters become underscores."""
    suffix = TREE_SUFFIX if tree else ""
    return f"{folder_of_names(folder)}/{_part(stem)}-{uuid.uuid4().hex}{suffix}"


def folder_of_names(folder: str) -> str:
    """The folder part of the names that are made for this folder."""
    return "/".join(_part(part) for part in folder.split("/"))


def is_below_own(name: str) -> bool:
    """Whether a name or a leftover is in one of the folders that homes write to."""
    return name.partition("/")[0] in (*FOLDERS, WRITING_NAME)


def is_tree(name: str) -> bool:
    return name.endswith(TREE_SUFFIX)


def ends_name(part: str) -> bool:
    """Whether this part of a path is the last one of a name."""
    return _ID.search(part) is not None


def name_in(path: str) -> str | None:
    """The name that a path below the store's root belongs to; None if it is not one of ours."""
    parts = path.split("/")
    ends = (count for count, part in enumerate(parts, 1) if ends_name(part))
    return "/".join(parts[: next(ends, 0)]) or None


def require_name(name: str) -> str:
    """The name itself, if it is valid.

    Raises:
        DataError: when it is not valid: it might point anywhere.
    """
    *folders, leaf = name.split("/")
    plain = all(_PLAIN.fullmatch(part) for part in (*folders, leaf))
    if not plain or not folders or not ends_name(leaf) or any(map(ends_name, folders)):
        raise DataError(f"{name!r} is not a name in a store: the row that names it is damaged")
    return name


def _part(text: str) -> str:
    plain = _ODD.sub("_", text).lstrip(".")[:_PART_CHARACTERS]
    return f"{plain}_" if not plain or ends_name(plain) else plain
