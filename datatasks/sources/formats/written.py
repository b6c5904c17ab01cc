"""Schemas that messages are written in: files that a source names, and the framing that names one.

A framed message begins as clients of Confluent's schema registry write it: a zero byte, and the id
of its schema in four bytes, big-endian ("Wire format" in its documentation). No registry is
asked: ids are looked up in what the source declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forebay.errors import ConfigError

FILE_BYTES_MAX = 16 << 20
_HEADER_BYTES = 5


@dataclass(frozen=True)
class Written:
    """What the messages of a source are written in.

    files: schema id to file; one under None where messages are not framed.
    message_type: full name of the message type in each of these files; empty for Avro.
    """

    files: Mapping[int | None, Path]
    message_type: str = ""

    @property
    def is_framed(self) -> bool:
        """Whether messages begin with the id of their schema."""
        return None not in self.files

    def contents(self) -> dict[int | None, bytes]:
        """The files.

        Raises:
            ConfigError: for one that cannot be read, or is too large to be a schema.
        """
        return {number: _content(path) for number, path in self.files.items()}


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"schema file {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"schema file {path} has more than {FILE_BYTES_MAX:,} bytes")
    return content


def framed(schema_id: int, payload: bytes) -> bytes:
    """A payload after the id of its schema."""
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def unframed(value: bytes) -> tuple[int, bytes]:
    """The id of a message's schema, and its payload.

    Raises:
        ValueError: for a message without the framing.
    """
    if len(value) < _HEADER_BYTES or value[0]:
        raise ValueError("it does not begin with a zero byte and the id of its schema")
    return int.from_bytes(value[1:_HEADER_BYTES], "big"), value[_HEADER_BYTES:]
