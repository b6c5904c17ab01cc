"""Message formats by name; a decoder is imported when it is first wanted."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence

from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.formats.decoder import USUAL_LIMITS, Decoder, MessageLimits, Written
from forebay.errors import ConfigError
from forebay.system.extras import require_extra

_DECODERS: Mapping[str, str] = {
    "arrow-ipc": "forebay.datatasks.sources.formats.arrow_ipc:ArrowDecoder",
    "json": "forebay.datatasks.sources.formats.json_rows:JsonDecoder",
    "avro": "forebay.datatasks.sources.formats.avro_rows:AvroDecoder",
    "protobuf": "forebay.datatasks.sources.formats.protobuf_rows:ProtobufDecoder",
}
_WITH_EXTRAS = frozenset({"avro", "protobuf"})  # of the same names


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
    if name not in _DECODERS:
        raise ConfigError(f"there is no message format {name!r}, only {', '.join(_DECODERS)}")
    if name in _WITH_EXTRAS:
        require_extra(name)
    decoder: type[Decoder] = pkgutil.resolve_name(_DECODERS[name])
    return decoder(columns, declared, limits, written)
