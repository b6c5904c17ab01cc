"""Files of records, changed at random: what each record becomes, and that nothing else does."""

from __future__ import annotations

import random
from typing import Any

from forebay.datatasks.sources.records.blocks import Records
from forebay.datatasks.sources.records.csv_lines import CsvLines
from forebay.datatasks.sources.records.json_lines import JsonLines
from forebay.datatasks.sources.records.kind import CsvKind, JsonKind, TfrecordKind
from forebay.datatasks.sources.records.tf_examples import TfExamples
from forebay.testing.source_data import COLUMNS, rows
from support.record_files import WRITERS, framed, tf_example

_ROWS = 12
_SPLICES = [b"\0", b"\xff", b'"', b"{", b"}", b"[" * 50, b",", b"\r", b"|", b"9" * 30, b"1e999"]


def outcome(records: Records, content: bytes, step: int = 1 << 20) -> list[tuple[Any, str]]:
    """Each record's row and why it is bad, one of which says nothing."""
    found: list[tuple[Any, str]] = []
    pieces = (content[at : at + step] for at in range(0, len(content), step))
    for block in records.blocks(pieces):
        assert block.first == len(found)
        fitted = records.decode_all(block)
        assert fitted.batch.num_rows == len(block) == len(block.places)
        for row in range(len(block)):
            reason = fitted.bad.get(row, "")
            values = [] if reason else fitted.batch.slice(row, 1).to_pylist()
            found.append((values[0] if values else None, reason))
    return found


def _opened(kind: str) -> Records:
    columns = list(COLUMNS)
    if kind == "json":
        return JsonLines(columns, COLUMNS, JsonKind.Options(path="x"))
    if kind == "csv":
        options = CsvKind.Options(path="x", names=columns)
        return CsvLines(columns, COLUMNS, options)
    return TfExamples(columns, COLUMNS, TfrecordKind.Options(path="x"))


def _mutated(record: bytes, chance: random.Random) -> bytes:
    changed = bytearray(record)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed) + 1)
        if chance.random() < 0.5:
            changed[at : at + chance.randint(0, 4)] = chance.choice(_SPLICES)
        elif at < len(changed):
            changed[at] = chance.randrange(256)
    return bytes(changed)


def mutants(kind: str, count: int, seed: float) -> None:
    """Change one record of a file, and see that all others are as before."""
    chance = random.Random(seed)
    table = rows(0, range(_ROWS))
    if kind == "tfrecord":
        records = [tf_example(row) for row in table.to_pylist()]
    else:
        records = WRITERS[kind](table).splitlines()[kind == "csv" :]
    whole = outcome(_opened(kind), _file(kind, records))
    for _ in range(count):
        at = chance.randrange(_ROWS)
        record = _mutated(records[at], chance).replace(b"\n", b"")
        if kind != "tfrecord" and not record.rstrip(b"\r"):
            continue  # an empty line is no record
        content = _file(kind, [*records[:at], record, *records[at + 1 :]])
        found = outcome(_opened(kind), content, chance.choice([100, 1 << 20]))
        assert found[:at] + found[at + 1 :] == whole[:at] + whole[at + 1 :], record
        assert found[at] == outcome(_opened(kind), _file(kind, [record]))[0], record


def _file(kind: str, records: list[bytes]) -> bytes:
    if kind == "tfrecord":
        return b"".join(map(framed, records))
    return b"".join(record + b"\n" for record in records)
