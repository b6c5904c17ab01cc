"""Message formats by name; a decoder is imported when it is first wanted."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.decoder import USUAL_LIMITS, Decoder, MessageLimits
from forebay.datatasks.sources.formats.written_rows import Written, WrittenDecoder
from forebay.errors import ConfigError
from forebay.system.extras import require_extra

_DECODERS: Mapping[str, str] = {
    "arrow-ipc": "forebay.datatasks.sources.formats.arrow_ipc:ArrowDecoder",
    "json": "forebay.datatasks.sources.formats.json_rows:JsonDecoder",
}
# Formats whose messages only their schema tells how to read, and the extra of each.
_WRITTEN: Mapping[str, str] = {
    "avro": "forebay.datatasks.sources.formats.avro_rows:AvroDecoder",
    "protobuf": "forebay.datatasks.sources.formats.protobuf_rows:ProtobufDecoder",
}


def decoder_named(
    name: str,
    columns: Sequence[str],
    declared: Mapping[str, ColumnType],
    limits: MessageLimits = USUAL_LIMITS,
    written: Written | None = None,
) -> Decoder:
    """The decoder of a format. written: the schemas of its messages, where it has such.

    Raises:
        ConfigError: when no decoder has this name, or a schema cannot be used.
        MissingExtraError: when the format's library is not installed.
    """
    if name in _WRITTEN:
        require_extra(name)
        by_schema: type[WrittenDecoder] = pkgutil.resolve_name(_WRITTEN[name])
        return by_schema(columns, declared, limits, written)
    if name not in _DECODERS:
        known = ", ".join([*_DECODERS, *_WRITTEN])
        raise ConfigError(f"there is no message format {name!r}, only {known}")
    decoder: type[Decoder] = pkgutil.resolve_name(_DECODERS[name])
    return decoder(columns, declared, limits)
