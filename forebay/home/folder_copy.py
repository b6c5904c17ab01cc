"""Links or copies a name from one folder store into another, under the same name."""

from __future__ import annotations

from pathlib import Path

from forebay.home.folder_changes import link_or_copy, new_folder_in
from forebay.home.store import Stored
from forebay.home.store_names import is_tree, require_name
from forebay.home.tree_index import CONTENT_NAME, INDEX_NAME
from forebay.home.verified import missing, read_index
from forebay.system.files import make_folder, sync, writing
from forebay.system.trees import name_tree


def copy_name(stored: Stored, source: Path, target: Path, unfinished: Path) -> None:
    """Make what has a name below one folder available below another, durably.

    Args:
        stored: the name, and what is expected there.
        source: the root of the store that has it.
        target: the root of the other one.
        unfinished: a folder on the target's file system for what is not finished.

    Raises:
        DataError: when it is missing, or the index of a tree is damaged.
        InfrastructureError: when it cannot be read or written.
    """
    place, new = source / require_name(stored.name), target / stored.name
    if new.exists():
        return
    with writing(new):
        make_folder(new.parent)
        try:
            if is_tree(stored.name):
                _copy_tree(stored, place, new, unfinished)
            else:
                link_or_copy(place, unfinished / new.name)
                sync(unfinished / new.name)
                (unfinished / new.name).rename(new)
        except (FileNotFoundError, NotADirectoryError):
            raise missing(str(place)) from None
        sync(new.parent)


def _copy_tree(stored: Stored, place: Path, new: Path, unfinished: Path) -> None:
    """Copy what the index lists: a folder that is being removed looks like an empty one."""
    content = (place / INDEX_NAME).read_bytes()
    index = read_index(content, stored, str(place))
    with new_folder_in(unfinished, new.name) as (folder, stream):
        stream.write(content)
        stream.flush()
        for path in ("", *index.folders):
            (folder / CONTENT_NAME / path).mkdir()
        for file in index.files:
            link_or_copy(place / CONTENT_NAME / file.path, folder / CONTENT_NAME / file.path)
        name_tree(folder, new)
