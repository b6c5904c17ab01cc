"""Names in a store: used once, plain on every file system and in every URL, and recognisable.

A name is FOLDER/STEM-ID, and that of a tree FOLDER/STEM-ID.tree, where ID has 32 hexadecimal
digits and is never used again. No part of a folder ends like that.
"""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from forebay.errors import DataError

TREE_SUFFIX = ".tree"
# What a home's names begin with. Anything else below a store's root is not its own: a store of
# another home may be there.
PLANS, LISTINGS, MODELS = FOLDERS = ("plans", "listings", "models")
WRITING_NAME = ".writing"  # in a store in a folder: what has no name yet
_ODD = re.compile(r"[^A-Za-z0-9_.=-]+")
_ID = re.compile(r"-[0-9a-f]{32}(?:\.tree)?$")
_PLAIN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*")
_PART_CHARACTERS = 120  # with the id after it, far below the limit of file systems


class Place(NamedTuple):
    """A name, and what comes after it inside a tree ("" for a file and for the tree itself)."""

    name: str
    inside: str


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
    """Whether a name is that of a tree."""
    return name.endswith(TREE_SUFFIX)


def ends_name(part: str) -> bool:
    """Whether this part of a path is the last one of a name."""
    return _ID.search(part) is not None


def place_of(path: str) -> Place | None:
    """Which name a path below the store's root belongs to; None if it is not one of ours."""
    parts = path.split("/")
    for count, part in enumerate(parts, 1):
        if ends_name(part):
            return Place("/".join(parts[:count]), "/".join(parts[count:]))
    return None


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
