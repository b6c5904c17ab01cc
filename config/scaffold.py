"""`forebay init`: a new project, and the YAML of a source and a pipeline from stored columns.

Produces text only: the caller reads the file's schema and passes the columns in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import yaml

from forebay.config.specs.sources import ColumnType
from forebay.config.yaml.positions import KEY_MAX, text_fault
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
    """Columns that can be declared: of a known type, with a unique name that YAML may have."""
    names = [column.name for column in columns]
    return [
        column
        for column in columns
        if column.type is not None
        and 0 < len(column.name) <= KEY_MAX
        and not text_fault(column.name)
        and names.count(column.name) == 1
    ]


def event_time_of(columns: Sequence[StoredColumn]) -> str | None:
    kept = usable(columns)
    return next((column.name for column in kept if column.type is ColumnType.TIMESTAMP), None)


_SPECIAL = re.compile(r"[{*?\[%]")  # what a pattern reads as more than itself


# Folders that name a time: `dt=2026-03-01`, `20260301`, `year=2026`, `month=3`.
_DATED = (
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "{date}"),
    (re.compile(r"[0-9]{8}"), "{date:%Y%m%d}"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}"), "{date:%Y-%m-%d-%H}"),
    (re.compile(r"[0-9]{10}"), "{date:%Y%m%d%H}"),
)
_PARTS = {"year": 4, "month": 2, "day": 2, "hour": 2}


def window_path(folders: Sequence[str], files: str) -> str | None:
    """The pattern of paths whose folders name a day or an hour; None where none does.

    folders: those of one file. files: the pattern of file names.
    """
    found, left = [], list(_PARTS)
    for folder in folders:
        key, equals, value = folder.rpartition("=")
        form = next((form for regex, form in _DATED if regex.fullmatch(value)), "")
        part = key if equals else next(iter(left), "")  # of 2026/03/01 the order says it
        if not form and part in left and re.fullmatch(rf"[0-9]{{1,{_PARTS[part]}}}", value):
            form = f"{{{part}}}"
            left.remove(part)
        found.append(f"{key}{equals}{form}" if form and not _SPECIAL.search(key) else "*")
    is_whole = any("{date" in each for each in found) or not {"year", "month", "day"} & set(left)
    return "/".join([*found, files]) if is_whole and found else None


_LABELS = {"label", "target", "click", "clicked", "conversion", "converted", "purchased", "bought"}
_EVENTS = ("event_id", "event", "id", "uuid", "request_id", "impression_id")
_NUMERIC = {ColumnType.FLOAT, ColumnType.BOOL}
_HASHED = {ColumnType.STRING, ColumnType.INT, ColumnType.LIST_STRING, ColumnType.LIST_INT}


def guessed_pipeline(
    source: str, columns: Sequence[StoredColumn], start: date, end: date | None = None
) -> str | None:
    """The YAML of a pipeline that trains on a source; None where no column looks like a label.

    start: the day of its first window. end: the day after the last one; None where more will come.
    """
    types = {column.name: column.type for column in usable(columns)}
    bools = [name for name, kind in types.items() if kind is ColumnType.BOOL]
    ints = [name for name, kind in types.items() if kind is ColumnType.INT]
    named = [n for n in (*ints, *bools) if re.sub("^(is|has|was)_", "", n.casefold()) in _LABELS]
    label = next(iter([*named, *bools]), None)
    single = [n for n, k in types.items() if k is ColumnType.STRING or (n in ints and n != label)]
    event = next((name for name in (*_EVENTS, *single) if name in single), None)
    hashed, numeric = {"encode": "hash", "buckets": 10_000}, {"encode": "numeric"}
    features = {
        name: dict(numeric if kind in _NUMERIC else hashed)
        for name, kind in types.items()
        if kind in _NUMERIC | _HASHED and name not in {label, event}
    }
    if label is None or event is None or not features:
        return None
    dataset = {"window": "1d", "start": start, **({"end": end} if end else {})}
    dataset |= {"event_id": event, "label": {"column": label}}
    dataset |= {"streams": {source: {"sources": [source]}}, "features": features}
    guess = (
        "# A guess by names, types and times: see that start, event_id, label and features are\n"
        "# what you mean.\n"
    )
    guess += "# `end` is where the rows end: remove it when more come.\n" if end else ""
    text = yaml.safe_dump({"dataset": dataset}, sort_keys=False, default_flow_style=None, width=200)
    return schema_line("pipeline") + guess + text


def declared_source(kind: str, options: Mapping[str, str], columns: Sequence[StoredColumn]) -> str:
    """The YAML of a source. It says what was guessed and what had to be left out."""
    kept = usable(columns)
    left_out = [column for column in columns if column not in kept]
    event_time = event_time_of(columns)
    lines = [
        schema_line("source").rstrip("\n"),
        f"kind: {kind}",
        "options:",
        *(_line(key, value, 2) for key, value in options.items()),
        "columns:",
        *(_line(c.name, c.type.value, 2) for c in kept if c.type is not None),
    ]
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
