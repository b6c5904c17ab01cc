"""Opening a declared source: options, event time, and the class that a kind names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning import open_source as opening
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.memory.source import MemorySource
from forebay.errors import ConfigError, ForebayError, MissingExtraError


def spec(kind: str, options: dict[str, Any], event_time: str | None = "at") -> SourceSpec:
    fields = {"name": "clicks", "kind": kind, "options": options, "event_time": event_time}
    return SourceSpec.model_validate({**fields, "columns": {"at": "timestamp"}})


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        (spec("memory", {"tabel": "t"}), "options of kind 'memory': table: Field required; tabel"),
        (spec("parquet", {"path": "d"}, None), "event_time has to name a timestamp column"),
        (spec("kakfa", {}), "unknown kind 'kakfa'"),
    ],
)
def test_what_a_kind_does_not_take(declared: SourceSpec, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=problem):
        open_source(declared, tmp_path)


class _Far(SourceKind):
    name: ClassVar[str] = "far"
    bounded: ClassVar[bool] = False


class _Whole(MemorySource):
    """One class that is the kind too: nothing else has to be named."""

    name: ClassVar[str] = "whole"
    source: ClassVar[str] = ""


class _Half(Source):
    name: ClassVar[str] = "half"
    bounded: ClassVar[bool] = False


def opened(monkeypatch: pytest.MonkeyPatch, kind: type[SourceKind], **options: str) -> Source:
    monkeypatch.setattr(opening, "kind_named", lambda _: kind)
    return open_source(spec(kind.name, options), Path())


def test_one_class_is_kind_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(opened(monkeypatch, _Whole, table="t"), _Whole)


def test_a_kind_without_options_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _Far.Options is Spec
    with pytest.raises(ConfigError, match="options of kind 'far': path: Extra inputs"):
        opened(monkeypatch, _Far, path="x")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("no_such_module:Far", "kind 'far' reads through no_such_module:Far, which cannot be"),
        (f"{__name__}:Nobody", "has no attribute 'Nobody'"),
        ("not a name", "reads through not a name, which cannot be imported"),
        ("pathlib:Path", "kind 'far': pathlib:Path is not a Source"),
        ("", r"test_open_source:_Far is not a Source"),
    ],
)
def test_a_class_that_cannot_read(
    source: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Far, "source", source)
    with pytest.raises(MissingExtraError, match=problem):
        opened(monkeypatch, _Far)


def test_a_source_says_which_methods_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ForebayError, match="not define open, scan"):
        opened(monkeypatch, _Half)
