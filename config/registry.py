"""Source kinds, found by the entry-point group `forebay.sources`.

A kind's class is light: it declares options and says how time cuts its rows. Whatever needs a
storage library is imported inside `open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import ClassVar

from forebay.config.base import Spec
from forebay.config.sources import SourceSpec
from forebay.config.spelling import nearest
from forebay.errors import ConfigError, MissingExtraError

GROUP = "forebay.sources"


class SourceKind(ABC):
    """One storage system. Registered as `name = "package.module:Class"` in `forebay.sources`.

    name: what `kind:` says in YAML; equals the entry point's name.
    bounded: True when windows are cut by event time, False when by publication time.
    options: the model of `options:` in YAML.
    """

    name: ClassVar[str]
    bounded: ClassVar[bool]
    options: ClassVar[type[Spec]]

    @classmethod
    @abstractmethod
    def open(cls, spec: SourceSpec, options: Spec, root: Path) -> object:
        """The `forebay.datatasks.sources.common.base.Source` of a declaration.

        Called with options already validated by `options`; relative paths start at `root`.
        Connects to nothing before the source is asked something.
        """

    @classmethod
    def needs_event_time(cls, options: Spec) -> bool:  # noqa: ARG003 - kinds look at their options
        """Whether a window can be cut only with `event_time`. Never called for invalid options."""
        return cls.bounded


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def kind_names() -> list[str]:
    """Names of the installed kinds, without importing them."""
    return sorted(_entry_points())


@cache
def kind_named(name: str) -> type[SourceKind]:
    """The kind of a name.

    Raises:
        ConfigError: when no such kind is installed.
        MissingExtraError: when the package that installs it cannot be imported.
    """
    entry = _entry_points().get(name)
    if entry is None:
        guess = nearest(name, kind_names())
        way_out = f" (did you mean {guess}?)" if guess else ""
        installed = ", ".join(kind_names())
        raise ConfigError(f"unknown kind {name!r}{way_out}. Installed kinds: {installed}")
    try:
        kind = entry.load()
    except ImportError as error:
        raise MissingExtraError(
            f"kind {name!r} is registered as {entry.value} and cannot be imported: {error}"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, SourceKind)):
        raise MissingExtraError(f"kind {name!r}: {entry.value} is no SourceKind")
    return kind


def installed_kinds() -> dict[str, type[SourceKind]]:
    """Every installed kind by name."""
    return {name: kind_named(name) for name in kind_names()}
