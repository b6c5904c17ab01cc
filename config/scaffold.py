"""`forebay init`: a new project with an example, and a source's YAML from stored columns.

Produces text only: the caller reads the file's schema and passes the columns in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import yaml

from forebay.config.specs.sources import ColumnType
from forebay.system.names import is_name

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH_MAX = 63

README = """\
# {name}

Sources and pipelines for Forebay.

- `config/sources/NAME.yaml` declares one source: where rows are stored and what they hold.
- `config/pipelines/NAME.yaml` declares one pipeline: streams of sources, label, features, model.

```
forebay check               # every problem with file, line and column
forebay check --connect     # compare the declarations with the storage
forebay explain example     # what the pipeline will run
forebay run example --from 2026-03-01 --to 2026-03-03
forebay why example 2026-03-03
forebay models ls example
```

`config/sources/example.yaml` and `config/pipelines/example.yaml` run as they are, on the generated
rows in `data/example`. Remove all three when you have your own. Editors complete and check the YAML
with `schema/`; after an upgrade remove it and run `forebay init .` again.
"""
EXAMPLE_SOURCE = """\
# Generated rows: who saw which item at which price, and whether they clicked.
kind: parquet
options:
  path: data/example
  window_path: date={date}/*.parquet
columns:
  id: int
  at: timestamp
  user: string
  item: string
  price: float
  clicked: int
event_time: at
starts: 2026-03-01
ends: 2026-03-04
"""
EXAMPLE_PIPELINE = """\
description: Which items a user clicks
dataset:
  window: 1d
  start: 2026-03-01
  end: 2026-03-04
  event_id: id
  label: {column: clicked}
  streams:
    history: {sources: [example]}
  features:
    user: {encode: hash, buckets: 1024}
    item: {encode: hash, buckets: 256}
    price: {encode: numeric, transform: log1p}
train:
  paradigm: batch
  minibatch_rows: 64
"""
GITIGNORE = """\
# Ledger, models, jobs and logs of Forebay.
.forebay/
"""
PRE_COMMIT = """\
# Checks the declarations before each commit (`pre-commit install` turns it on).
repos:
  - repo: local
    hooks:
      - id: forebay-check
        name: forebay check
        entry: forebay check
        language: system
        pass_filenames: false
        files: ^config/
"""


@dataclass(frozen=True)
class StoredColumn:
    """A column as stored: the name of its stored type, and the declared type that fits, if any."""

    name: str
    stored_as: str
    type: ColumnType | None


def schema_line(of: Literal["source", "pipeline"]) -> str:
    """The first line of a YAML file, from which editors know its schema."""
    return f"# yaml-language-server: $schema=../../schema/{of}.json\n"


def example_files() -> dict[str, str]:
    """An example source and pipeline that run, by relative path."""
    return {
        "config/sources/example.yaml": schema_line("source") + EXAMPLE_SOURCE,
        "config/pipelines/example.yaml": schema_line("pipeline") + EXAMPLE_PIPELINE,
    }


def project_files(name: str) -> dict[str, str]:
    """Texts of a new project without declarations, by relative path."""
    return {
        "config/sources/.gitkeep": "",
        "config/pipelines/.gitkeep": "",
        "README.md": README.replace("{name}", name),
        ".gitignore": GITIGNORE,
        ".pre-commit-config.yaml": PRE_COMMIT,
    }


def source_name(text: str) -> str:
    """A valid file name, as close to `text` as the rule for names allows."""
    name = _NOT_IN_NAMES.sub("_", text).strip("_-")
    if not name[:1].isalpha():
        name = f"source_{name}".rstrip("_")
    name = name[:_NAME_LENGTH_MAX]
    return name if is_name(name) else "source"


def usable(columns: Sequence[StoredColumn]) -> list[StoredColumn]:
    """Columns that can be declared: of a known type, with a unique name."""
    names = [column.name for column in columns]
    return [
        column
        for column in columns
        if column.type is not None and column.name and names.count(column.name) == 1
    ]


def event_time_of(columns: Sequence[StoredColumn]) -> str | None:
    kept = usable(columns)
    return next((column.name for column in kept if column.type is ColumnType.TIMESTAMP), None)


def folder_source(
    kind: str, path: str, columns: Sequence[StoredColumn], window_path: str | None
) -> str:
    """The YAML of a source of files. It says what was guessed and what had to be left out."""
    kept = usable(columns)
    left_out = [column for column in columns if column not in kept]
    event_time = event_time_of(columns)
    lines = [
        schema_line("source").rstrip("\n"),
        f"kind: {kind}",
        "options:",
        _line("path", path, 2),
    ]
    if window_path is not None:
        lines += [_line("window_path", window_path, 2)]
    lines += ["columns:", *(_line(c.name, c.type.value, 2) for c in kept if c.type is not None)]
    if event_time is not None:
        lines += ["# A guess: the first timestamp column. It says when a row's event happened."]
        lines += [_line("event_time", event_time)]
    if left_out:
        lines += ["# Left out, since no declared type fits (or the name is empty or not unique):"]
        # Types contain field names that may come from untrusted files: a line break would add YAML.
        lines += [f"#   {_one_line(c.name)}: {_one_line(c.stored_as)}" for c in left_out]
    return "\n".join(lines) + "\n"


def _line(key: str, value: str, indent: int = 0) -> str:
    readable = (key + value).isprintable()
    text = yaml.safe_dump({key: value}, width=2**31, allow_unicode=readable).rstrip("\n")
    return "\n".join(" " * indent + line for line in text.split("\n"))


def _one_line(text: str) -> str:
    return repr(text) if not text.isprintable() or not text else text
