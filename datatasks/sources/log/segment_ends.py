"""The last segments before a window's end: they say whether a log that was moved is the same.

By `PATH/PARTITION/SEGMENT`, with the log's path as it was declared, the version: size and SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.common.borders import Borders
from forebay.datatasks.sources.common.files import Files, Listing
from forebay.datatasks.sources.common.remote import answering
from forebay.datatasks.sources.common.versions import described, version_text
from forebay.datatasks.sources.log.borders import Partition
from forebay.errors import DataError


def segments_before(
    files: Files, listing: Listing, partitions: Sequence[Partition], ends: Mapping[str, int]
) -> dict[str, str]:
    """Those before an offset of each partition; none where there is none."""
    last = [int(np.searchsorted(each.base, ends.get(each.name, 0))) - 1 for each in partitions]
    at = [each.at[index] for each, index in zip(partitions, last, strict=True) if index >= 0]
    paths = listing.paths.take(pa.array(at, pa.int64())).to_pylist()
    return {f"{files.place}/{path}": _version(files.full(path)) for path in paths}


def require_same(files: Files, moved: str, borders: Borders) -> None:
    """Refuse a log that is not the one that was planned at its old place.

    Raises:
        DataError: which names what differs.
    """
    known = borders.last_segments()
    differs = "" if known or not borders.partitions(moved) else "no checksums of it were kept"
    for place, version in known.items():
        path, partition, name = place.rsplit("/", 2)
        segment = f"{partition}/{name}"
        if path == files.place:  # it was planned here
            continue
        if not files.exists(segment):
            differs = f"{segment} is not there"
        elif (now := _version(files.full(segment))) != version:
            differs = f"{segment} has {described(now)}, and had {described(version)}"
    if differs:
        raise DataError(
            f"log {files.place}: it cannot be taken for {moved}, moved: {differs} (put it there "
            "as it was, correct `options.moved`, or leave that out and declare `starts`)"
        )


def _version(place: str) -> str:
    with answering(place), Path(place).open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
        return version_text(stream.tell(), "sha256", checksum)
