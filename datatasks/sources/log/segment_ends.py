"""The last segments before a window's end: they say whether a log is the one that was planned.

By `PATH/PARTITION/SEGMENT`, with the log's path as it was declared, the version: size and SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from forebay.datatasks.sources.common.contract.borders import Borders, made_anew
from forebay.datatasks.sources.common.files.listing import Files, Listing
from forebay.datatasks.sources.common.files.remote import answering
from forebay.datatasks.sources.common.files.versions import described, version_text
from forebay.datatasks.sources.log.borders import Partition
from forebay.datatasks.sources.log.writer import parse_segment
from forebay.errors import DataError


def segments_before(
    files: Files, listing: Listing, partitions: Sequence[Partition], ends: Mapping[str, int]
) -> dict[str, str]:
    """Those before an offset of each partition; none where there is none."""
    last = [int(np.searchsorted(each.base, ends.get(each.name, 0))) - 1 for each in partitions]
    at = [each.at[index] for each, index in zip(partitions, last, strict=True) if index >= 0]
    paths = listing.paths.take(pa.array(at, pa.int64())).to_pylist()
    return {f"{files.place}/{path}": _version(files.full(path)) for path in paths}


def require_same(
    files: Files,
    listing: Listing,
    partitions: Sequence[Partition],
    moved: str | None,
    borders: Borders,
) -> None:
    """Refuse a log that is not the one that was planned here, or at its old place.

    Of a partition that was trimmed up to there, nothing is left to compare.

    Raises:
        DataError: which names what differs.
    """
    by_name = {each.name: each for each in partitions}
    planned = by_name.keys() & borders.partitions(moved or files.place).keys()
    known = borders.last_segments(planned, None if moved else files.place)
    if moved and planned and not known:
        raise _not_moved(files, moved, "no checksums of it were kept")
    for place, version in known.items():
        path, name, segment = place.rsplit("/", 2)
        differs = _difference(files, listing, by_name[name], f"{name}/{segment}", version)
        if differs and moved and path != files.place:
            raise _not_moved(files, moved, f"{name}/{segment} {differs}")
        if differs:
            raise made_anew(
                f"log {files.place}, partition {name}",
                f"a window was planned to end behind {name}/{segment}, and now it {differs}",
            )


def _difference(
    files: Files, listing: Listing, partition: Partition, segment: str, version: str
) -> str:
    """What is not as it was at a segment's offset, in words; nothing where it was trimmed away."""
    base = parse_segment(segment.rpartition("/")[2])[0]
    if partition.base[0] > base:
        return ""
    at = int(np.searchsorted(partition.base, base))
    if at == len(partition.at) or listing.paths[int(partition.at[at])].as_py() != segment:
        return "is not there"
    now = _version(files.full(segment))
    return "" if now == version else f"has {described(now)}, and had {described(version)}"


def _not_moved(files: Files, moved: str, differs: str) -> DataError:
    return DataError(
        f"log {files.place}: it cannot be taken for {moved}, moved: {differs} (put it there "
        "as it was, correct `options.moved`, or leave that out and declare `starts`)"
    )


def _version(place: str) -> str:
    with answering(place), Path(place).open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
        return version_text(stream.tell(), "sha256", checksum)
