"""The last segments before a window's end: they say whether a log that was moved is the same.

Each is a text `PATH/PARTITION/SEGMENT|BYTES|SHA256`, with the log's path as it was declared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from forebay.datatasks.sources.common.files import Files, Listing
from forebay.datatasks.sources.common.remote import answering
from forebay.datatasks.sources.log.borders import Partition, Place
from forebay.errors import DataError


def segments_before(
    files: Files, listing: Listing, partitions: Iterable[Partition], ends: Mapping[str, int]
) -> dict[str, str]:
    """Of the segments before these offsets, by partition; nothing where there is none."""
    found = {}
    for each in partitions:
        last = int(np.searchsorted(each.base, ends.get(each.name, 0))) - 1
        if last >= 0:
            at = int(each.at[last])
            path = listing.paths[at].as_py()
            checksum = _checksum(files.full(path))
            found[each.name] = f"{files.place}/{path}|{listing.sizes[at]}|{checksum}"
    return found


def require_same(
    files: Files,
    listing: Listing,
    place: Place,
    last_segments: Mapping[str, str],
    *,
    is_planned: bool,
) -> None:
    """Refuse a log that was declared to be moved, and is another one.

    Args:
        files: of the log.
        listing: its segments.
        place: as it is declared.
        last_segments: what was planned last. Those of this place are known to be right.
        is_planned: whether it has a window.

    Raises:
        DataError: which names what differs.
    """
    sizes = dict(zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True))
    for text in last_segments.values():
        known, size, checksum = text.rsplit("|", 2)
        path, partition, name = known.rsplit("/", 2)
        segment = f"{partition}/{name}"
        if path == place.path:
            continue
        if segment not in sizes:
            raise _is_another(place, f"{segment} is not there")
        if sizes[segment] != int(size):
            raise _is_another(place, f"{segment} has {sizes[segment]} bytes, and had {size}")
        if _checksum(files.full(segment)) != checksum:
            raise _is_another(place, f"{segment} has other bytes than when it was planned")
    if is_planned and not last_segments:
        raise _is_another(place, "its windows were planned by a version that kept no checksums")


def _is_another(place: Place, what: str) -> DataError:
    return DataError(
        f"log {place.path}: it cannot be taken for {place.moved}, moved: {what} (put it there as "
        "it was, correct `options.moved`, or leave that out and declare `starts`)"
    )


def _checksum(place: str) -> str:
    with answering(place), Path(place).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
