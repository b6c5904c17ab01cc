"""From a declaration to an opened source."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from forebay.config.registry import kind_named
from forebay.config.sources import SourceSpec
from forebay.datatasks.sources.common.base import Source
from forebay.errors import ConfigError


def open_source(spec: SourceSpec, root: Path) -> Source:
    """Open a declared source; relative paths in its options start at `root`.

    Raises:
        ConfigError: for an unknown kind, or options that the kind does not take.
    """
    kind = kind_named(spec.kind)
    try:
        options = kind.options.model_validate(spec.options)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors(include_url=False)
        )
        raise ConfigError(f"source {spec.name!r}, options of kind {spec.kind!r}: {wrong}") from None
    if spec.event_time is None and kind.needs_event_time(options):
        raise ConfigError(
            f"source {spec.name!r}: kind {spec.kind!r} cuts windows by event time, "
            "so event_time has to name a timestamp column"
        )
    source = kind.open(spec, options, root)
    if not isinstance(source, Source):
        raise ConfigError(f"kind {spec.kind!r} opened {type(source).__name__}, which is no Source")
    return source
