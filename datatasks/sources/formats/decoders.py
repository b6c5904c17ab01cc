"""Message formats by name; a decoder is imported when it is first wanted."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence

from forebay.config.sources import ColumnType
from forebay.datatasks.sources.formats.decoder import USUAL_LIMITS, Decoder, MessageLimits
from forebay.errors import ConfigError

_DECODERS: Mapping[str, str] = {
    "arrow-ipc": "forebay.datatasks.sources.formats.arrow_ipc:ArrowDecoder",
    "json": "forebay.datatasks.sources.formats.json_rows:JsonDecoder",
}


def decoder_named(
    name: str,
    columns: Sequence[str],
    declared: Mapping[str, ColumnType],
    limits: MessageLimits = USUAL_LIMITS,
) -> Decoder:
    """The decoder of a format.

    Raises:
        ConfigError: when no decoder has this name.
    """
    if name not in _DECODERS:
        raise ConfigError(f"there is no message format {name!r}: known are {', '.join(_DECODERS)}")
    decoder: type[Decoder] = pkgutil.resolve_name(_DECODERS[name])
    return decoder(columns, declared, limits)
