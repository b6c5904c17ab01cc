"""From a declaration to an opened source."""

from __future__ import annotations

import pkgutil
from pathlib import Path

from pydantic import ValidationError

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind, kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.environment import OPTIONS, hide_written
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.common.contract.borders import Borders
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.errors import ConfigError, MissingExtraError


def open_source(
    spec: SourceSpec, root: Path, borders: Borders | None = None, cache: PlanCache | None = None
) -> Source:
    """Open a declared source; relative paths in its options start at `root`.

    borders: those of the pipeline that plans; without them nothing is decided. cache: what earlier
    plans read; without it nothing is kept.

    Raises:
        ConfigError: for an unknown kind, or a declaration that the kind does not take.
        MissingExtraError: when the kind's class cannot be imported or is not a complete `Source`.
    """
    kind = kind_named(spec.kind)
    hide_written({OPTIONS: spec.options})
    options = _options(kind, spec)
    if spec.event_time is None and kind.needs_event_time(options):
        raise ConfigError(
            f"source {spec.name!r}: kind {spec.kind!r} cuts windows by event time, "
            "so event_time has to name a timestamp column"
        )
    source = source_class(kind)(spec, options, root)
    if borders is not None:
        source.borders = borders
    if cache is not None:
        source.cache = cache
    return source


def _options(kind: type[SourceKind], spec: SourceSpec) -> Spec:
    try:
        return kind.Options.model_validate(spec.options)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors(include_url=False)
        )
        raise ConfigError(f"source {spec.name!r}, options of kind {spec.kind!r}: {wrong}") from None


def source_class(kind: type[SourceKind]) -> type[Source]:
    """The class that plans and reads: the one that the kind names, or the kind itself.

    Raises:
        MissingExtraError: when it cannot be imported or is not a complete `Source`.
    """
    place = kind.source or f"{kind.__module__}:{kind.__qualname__}"
    try:
        found = pkgutil.resolve_name(place) if kind.source else kind
    except (ImportError, AttributeError, ValueError) as error:
        raise MissingExtraError(
            f"kind {kind.name!r} reads through {place}, which cannot be imported: {error}"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Source)):
        raise MissingExtraError(f"kind {kind.name!r}: {place} is not a Source")
    missing = ", ".join(sorted(found.__abstractmethods__))
    if missing:
        raise MissingExtraError(f"kind {kind.name!r}: {place} does not define {missing}")
    return found
