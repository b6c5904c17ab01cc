"""Source kinds, found through the entry-point group `forebay.sources`.

Reading a declaration loads the class of its kind, as does Airflow when it parses a pipeline, so the
kinds that come with Forebay do not import Arrow or a storage client at that point.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar

from forebay.config.specs.base import Spec
from forebay.config.yaml.spelling import nearest
from forebay.errors import ConfigError, MissingExtraError

__all__ = ["SourceKind", "Spec"]

GROUP = "forebay.sources"


class SourceKind:
    """What a declaration needs to know about a storage system, registered by one entry point.

    A `Source` (forebay.datatasks.sources.common.contract.base) is a `SourceKind` that also reads
    the storage. One class is enough; with two, reading a declaration stays light: the entry point
    then names the light one, whose `source` names the other.

    name: what `kind:` says in YAML; equals the entry point's name.
    bounded: True when windows are cut by event time, False when by publication time.
    source: "package.module:Class" of the `Source`, imported when a source of the kind is opened;
        empty if this class is the `Source`.
    Options: the model of `options:` in YAML; without one the kind takes no options.
    """

    name: ClassVar[str]
    bounded: ClassVar[bool]
    source: ClassVar[str] = ""
    Options: ClassVar[type[Spec]] = Spec

    @classmethod
    def needs_event_time(cls, options: Spec) -> bool:  # noqa: ARG003 - kinds look at their options
        """Whether the declaration must name its `event_time` column so that windows can be cut.

        Called by `forebay check`, by Airflow's parser and before a source is opened. Never called
        with invalid options.
        """
        return cls.bounded


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def kind_names() -> list[str]:
    """Names of the installed kinds, without importing them."""
    return sorted(_entry_points())


@cache
def kind_named(name: str) -> type[SourceKind]:
    """The kind with this name.

    Raises:
        ConfigError: when no such kind is installed.
        MissingExtraError: when the class that its package registers cannot be imported or used.
    """
    entry = _entry_points().get(name)
    if entry is None:
        guess = nearest(name, kind_names())
        way_out = f" (did you mean {guess}?)" if guess else ""
        installed = ", ".join(kind_names())
        raise ConfigError(
            f"unknown kind {name!r}{way_out}. Installed kinds: {installed}. Other files can be "
            f"converted to Parquet (pyarrow.parquet.write_table), and other storage can become a "
            "kind of its own: docs/write-a-source.md"
        )
    try:
        kind = entry.load()
    except (ImportError, AttributeError) as error:
        raise MissingExtraError(
            f"kind {name!r} is registered as {entry.value} and cannot be imported: {error}; "
            "reinstall or upgrade the package that provides it"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, SourceKind)):
        raise MissingExtraError(f"kind {name!r}: {entry.value} is not a SourceKind")
    missing = [each for each in ("name", "bounded") if not hasattr(kind, each)]
    if missing:
        raise MissingExtraError(f"kind {name!r}: {entry.value} has no {' and no '.join(missing)}")
    if kind.name != name:
        raise MissingExtraError(f"kind {name!r}: {entry.value} has the name {kind.name!r}")
    return kind


def installed_kinds() -> dict[str, type[SourceKind]]:
    """Every installed kind by name."""
    return {name: kind_named(name) for name in kind_names()}
