"""Uses: a source as one stream of a dataset reads it, with that stream's offset and feed.

Tasks, rows, row sums, dead letters and scores are counted per use. A source that one stream reads
has one use, with the same name as the source; if several streams read it, the name of each use also
contains the stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from forebay.system.names import is_name

# No name of a source or stream contains it.
AT = "@"


class SourceUse(NamedTuple):
    """One source in one stream. name: `clicks`, or `clicks@yesterday` beside another use of it."""

    name: str
    source: str
    stream: str


def source_uses(streams: Mapping[str, Sequence[str]]) -> list[SourceUse]:
    """The uses of all sources, in declared order. streams: names of sources by stream."""
    pairs = [(stream, name) for stream, names in streams.items() for name in dict.fromkeys(names)]
    readers = Counter(name for _, name in pairs)
    return [
        SourceUse(name if readers[name] == 1 else f"{name}{AT}{stream}", name, stream)
        for stream, name in pairs
    ]


class Doubled(NamedTuple):
    """A source at one position of a stream's list whose rows an earlier position already reads.

    first: the stream of the earlier position.
    """

    source: str
    stream: str
    place: int
    first: str


def doubled_sources(
    streams: Mapping[str, Sequence[str]], offsets: Mapping[str, timedelta]
) -> Iterator[Doubled]:
    """Positions that give a window the same rows again: the same source with the same offset.

    streams: names of sources by stream. offsets: of the streams; a stream whose offset is not known
    is not compared with others.
    """
    seen: dict[tuple[str, timedelta | str], str] = {}
    for stream, names in streams.items():
        for place, name in enumerate(names):
            rows = name, offsets.get(stream, stream)
            if rows in seen:
                yield Doubled(name, stream, place, seen[rows])
            seen.setdefault(rows, stream)


def source_of(use: str) -> str:
    """The declared source of a use."""
    return use.partition(AT)[0]


def stream_of(use: str) -> str:
    """The stream that a use names; empty if no other stream reads its source."""
    return use.partition(AT)[2]


def is_use_name(text: str) -> bool:
    """Whether a text may be the name of a use."""
    source, at, stream = text.partition(AT)
    return is_name(source) and (is_name(stream) if at else True)
