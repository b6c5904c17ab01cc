"""Commands of this process over a case, and what is wrong with what they say."""

from __future__ import annotations

import io
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from typing import Any, NamedTuple
from unittest.mock import patch

from forebay.cli import run
from forebay.config.load import load_project
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.errors import ForebayError
from forebay.home.database.open import close_databases
from forebay.testing.source_suite import tasks_of
from support.odd_inputs.cases import Case, Row
from support.odd_inputs.readers import as_declared, table_rows

_EVER = Interval(datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
_PLACE = re.compile(r"\.yaml(:|\",\s+\"line\": )[1-9]")  # as text, and as JSON
_SHOWN = 2_000
_CHECK = ("check", "--output", "json")
_DATES = ("--from", "2026-03-01", "--to", "2026-03-03")
_COMMANDS = (
    ("check", "--connect"),
    ("preview", "odd", "--output", "json", "--rows", "50"),
    ("preview", "odd", "--rows", "50"),
    ("plan", "p", *_DATES, "--output", "json"),
    ("explain", "p", *_DATES),
)


class Said(NamedTuple):
    command: str
    code: int
    out: str
    err: str


class Verdict(NamedTuple):
    """Of a case. is_read: all of its values were read, and equal what another program reads."""

    is_read: bool
    problems: list[str]
    said: list[Said]


def command(case: Case, *arguments: str) -> Said:
    out, err = io.StringIO(), io.StringIO()
    home = {"FOREBAY_HOME": str(case.root / "home")}
    with patch.dict(os.environ, home), redirect_stdout(out), redirect_stderr(err):
        code = run([*arguments, "--config", str(case.config)])
    return Said(" ".join(arguments), code, out.getvalue(), err.getvalue())


def judged_declaration(case: Case) -> Verdict:
    """`check` and `explain`: every problem has a file and line, and what passes is explained."""
    said = [command(case, *_CHECK)]
    problems = [*_outcome(said[0], case)]
    if said[0].code == 1:
        problems += [
            f"a problem without a place: {each}"
            for each in json.loads(said[0].out)
            if not (each["line"] >= 1 and str(case.config) in each["file"] and each["message"])
        ]
    for name in sorted(path.stem for path in case.config.glob("pipelines/*.yaml")):
        said.append(command(case, "explain", name))
        problems += _outcome(said[-1], case)
        if said[-1].code and not said[0].code:
            problems.append(f"check has no problem, but explain {name} fails: {said[-1].err}")
    return Verdict(False, problems, said)


def judged_files(case: Case, chance: random.Random) -> Verdict:
    """Commands that look at storage, and all rows that its source reads.

    Each command starts processes for footers of Parquet files: there it is only some of them.
    """
    commands = chance.sample(_COMMANDS, len(_COMMANDS) if case.sort == "log" else 2)
    said = [command(case, *each) for each in (_CHECK, *commands)]
    close_databases()
    problems = [each for one in said for each in _outcome(one, case)]
    rows, declared, failure = _read(case)
    if failure:
        problems += _named(failure, case, "reading")
    is_green = not failure and not any(each.code for each in said)
    if not case.fault and not is_green:
        problems.append(f"it is valid, but: {failure or [s for s in said if s.code]}"[:_SHOWN])
    if not is_green or case.read is None:
        return Verdict(False, problems, said)
    try:
        wanted = [row for row in case.read(declared) if _is_in_time(row, case)]
    except Exception:  # what nobody else reads is judged by nobody
        if not case.fault:
            raise
        return Verdict(False, problems, said)
    problems += _differences(_counted(rows), _counted(wanted))
    for one in said:
        if one.command.startswith("preview odd --output json"):
            problems += _previewed(json.loads(one.out), wanted)
    return Verdict(not problems, problems, said)


def _outcome(said: Said, case: Case) -> list[str]:
    text = said.out + said.err
    if "Traceback (most recent" in text or "error: unexpected " in text:
        return [f"{said.command}: {text[-_SHOWN:]}"]
    if said.code not in {0, 1, 2, 3}:
        return [f"{said.command}: exit code {said.code}: {text[-_SHOWN:]}"]
    return _named(text, case, said.command) if said.code else []


def _named(text: str, case: Case, command: str) -> list[str]:
    if _PLACE.search(text) or any(each in text for each in case.objects):
        return []
    return [f"{command}: neither a place nor an object is named: {text[:_SHOWN]}"]


def _read(case: Case) -> tuple[list[Row], dict[str, str], str]:
    try:
        project = load_project(case.config)
        spec = project.source("odd")
        with closing(open_source(spec, project.root)) as source:
            scan = source.scan([_EVER])
            batches = [
                chunk.batch
                for task in tasks_of(scan, [_EVER], 0)
                for chunk in source.open(task, None, list(spec.columns), 7)
            ]
    except ForebayError as error:
        return [], {}, str(error)
    declared = {name: str(kind) for name, kind in spec.columns.items()}
    return [row for batch in batches for row in table_rows(batch, declared)], declared, ""


def _is_in_time(row: Row, case: Case) -> bool:
    """Whether a row's own time is in the span that is read, or says nothing of it."""
    low, high = (int(each.timestamp()) * 1_000_000 for each in (_EVER.start, _EVER.end))
    return not case.by_time or row["at"] is None or low <= row["at"] < high


def _counted(rows: Iterable[Row]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def _differences(found: Counter[str], wanted: Counter[str]) -> list[str]:
    if found == wanted:
        return []
    more, less = list((found - wanted).elements()), list((wanted - found).elements())
    return [
        f"{len(more)} rows that nobody else reads: {more[:2]}, {len(less)} not read: {less[:2]}"
    ]


def _previewed(shown: Any, wanted: list[Row]) -> list[str]:
    declared = {each["column"]: each["declared"] for each in shown["columns"] if each["declared"]}
    rows = _counted(as_declared(row, declared) for row in shown["rows"])
    if shown["problems"] or shown["dead"] or (wanted and not rows):
        return [f"preview: {shown['problems']} {shown['dead']}, {sum(rows.values())} rows"]
    more = rows - _counted(wanted)
    return [f"preview shows rows that nobody else reads: {list(more)[:2]}"] if more else []
