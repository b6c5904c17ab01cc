"""Files of records as sources: what planning counts is what reading gives, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.record_files import WRITERS, compressed, framed, tf_example
from support.s3_server import S3Server

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.cautious.read_units import Poison, read_around
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.datatasks.sources.common.row_groups.planner import rows_by_span
from forebay.datatasks.sources.common.values.casting import Fitted
from forebay.datatasks.sources.common.values.times import Spans
from forebay.datatasks.sources.records.blocks import Block
from forebay.datatasks.sources.records.json_lines import JsonLines
from forebay.datatasks.tasks import Chunk, DeadRow, Position, TaskProgress
from forebay.errors import ConfigError, DataError
from forebay.home.paths import Home
from forebay.testing.source_data import hours, rows
from forebay.testing.source_suite import numbers, tasks_of

SPANS = hours(0, 2)


def opened(root: Path, kind: str = "json", **more: Any) -> Source:
    fields: dict[str, Any] = {
        "name": "clicks",
        "kind": kind,
        "options": {"path": "data"},
        "columns": {"number": "int", "at": "timestamp", "word": "string"},
        "event_time": "at",
    }
    source = open_source(SourceSpec.model_validate(fields | more), root)
    source.cache = PlanCache(Home(root / "home"))
    return source


def line(number: Any, hour: int, **more: Any) -> bytes:
    return json.dumps(
        {"number": number, "at": f"2026-03-01T{5 + hour:02d}:10:00Z", **more}
    ).encode()


def write(root: Path, name: str, content: bytes) -> None:
    (root / "data").mkdir(exist_ok=True)
    (root / "data" / name).write_bytes(content)


def read(source: Source) -> list[tuple[list[int], list[DeadRow]]]:
    """Numbers and dead rows of each window; as many as were planned."""
    scan, found = source.scan(SPANS), []
    for index in range(len(SPANS)):
        chunks: list[Chunk] = []
        for task in tasks_of(scan, SPANS, index):
            mine = list(source.open(task, None, ["number", "word"], 3))
            assert task.rows == sum(len(c.rows) + sum(d.rows for d in c.dead) for c in mine)
            chunks += mine
        found.append((numbers(chunks), [dead for chunk in chunks for dead in chunk.dead]))
    return found


def test_a_bad_row_is_in_the_window_of_its_time(tmp_path: Path) -> None:
    """In which it was planned: planning looks at the time alone."""
    bad = line("x", 2), line(5, 1, word=7)
    content = [line(1, 0), bad[0], line(2, 1), b"{no json", line(3, 2), bad[1], line(4, 0)]
    write(tmp_path, "all.json", b"\n".join(content))
    (first, lost), (second, odd), (third, wrong) = read(opened(tmp_path, bad_rows="dead_letter"))
    assert (first, second, third) == ([1, 4], [2], [3])
    assert [(dead.location["line"], dead.row) for dead in (*lost, *odd, *wrong)] == [
        (4, '"{no json"'),
        (6, bad[1].decode()),
        (2, bad[0].decode()),
    ]
    with pytest.raises(DataError, match=r"file all\.json, line 4, row 3: not JSON"):
        read(opened(tmp_path))


def test_records_without_a_time_go_with_the_first_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that one is blocks away."""
    monkeypatch.setattr("forebay.datatasks.sources.records.streams.PIECE_BYTES", 50)
    write(tmp_path, "a.json", b"\n".join([*[b'{"number": 7}'] * 40, line(1, 1), line(2, 0)]))
    found = read(opened(tmp_path, bad_rows="dead_letter"))
    assert [(rows, len(dead)) for rows, dead in found] == [([2], 0), ([1], 40), ([], 0)]
    assert "no time in column 'at'" in found[1][1][0].reason


def test_a_file_without_any_time_is_told_in_each_window(tmp_path: Path) -> None:
    write(tmp_path, "a.json", b'{"number": 7}\n{"number": 8}')
    write(tmp_path, "b.json", line(1, 1))
    write(tmp_path, "empty.json", b"")
    found = read(opened(tmp_path, bad_rows="dead_letter"))
    assert [(rows, [dead.rows for dead in lost]) for rows, lost in found] == [
        ([], [2]), ([1], [2]), ([], [2]),
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"a\.json cannot be read: no row has a time in 'at'"):
        read(opened(tmp_path))


NO_TIMES = {
    "not.json.gz": (line(1, 0), r"gzip stream is damaged"),
    "list.json": (b"[" + line(1, 0) + b"]", "a JSON object is needed, not list"),
    "wide.csv": ("number,at\n".encode("utf-16"), "first line does not name its columns"),
}


@pytest.mark.parametrize("name", NO_TIMES)
def test_what_is_wrong_with_a_file_of_bad_records_is_said(name: str, tmp_path: Path) -> None:
    """They have no times either, but that would mislead."""
    content, reason = NO_TIMES[name]
    kind = "csv" if name.endswith("csv") else "json"
    write(tmp_path, name, content)
    with pytest.raises(DataError, match=f"{name} cannot be read: .*{reason}"):
        read(opened(tmp_path, kind))
    for _, [dead] in read(opened(tmp_path, kind, bad_rows="dead_letter")):
        assert reason in dead.reason


ODD_FILES = {
    "no record": ("json", b"\n", ""),
    "only a header": ("csv", b"number,at,word\n", ""),
    "mixed kinds": ("json", line(1, 0, word="a", x=[1, "b"]) + b"\n" + line(2, 0, x=1), ""),
    "a key twice": ("json", line(1, 0, word="a")[:-1] + b', "x": 1, "x": "b"}', ""),
    "bad lines": ("json", b'{"\xff": 1}\n' + line(1, 0, word="a") + b"\n[", ""),
    "other names twice": ("csv", b"number,at,word,,\n1,2026-03-01,a,,\n", ""),
    "a name twice": ("csv", b"number,at,word,at\n1,2026-03-01,a,\n", "'at' appears more than"),
    "a name of no text": ("json", b'{"\\ud800": 1}', "surrogates not allowed"),
    "lines that are not whole": ("json", b'{\n"at": 1\n}', "not JSON"),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_findings_are_what_reading_would_mind(name: str, tmp_path: Path) -> None:
    kind, content, problem = ODD_FILES[name]
    write(tmp_path, f"a.{kind}", content)
    found = opened(tmp_path, kind).findings()
    assert [problem in each.message for each in found] == [True] * bool(problem)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_file_that_ends_early_is_read_to_there(ending: str, tmp_path: Path) -> None:
    content = b"\n".join(line(number, 1, word=f"{number * 7919}") for number in range(9000))
    whole = compressed(content, ending)
    write(tmp_path, f"a.json{ending}", whole[: len(whole) * 2 // 3])
    _, (rows, [dead]), _ = read(opened(tmp_path, bad_rows="dead_letter"))
    assert rows == list(range(len(rows)))
    assert 3000 < len(rows) < 9000
    assert dead.location == {"file": f"a.json{ending}", "line": len(rows) + 1, "row": len(rows)}
    assert "it and all after it cannot be read" in dead.reason
    with pytest.raises(DataError, match=f"line {len(rows) + 1}"):
        read(opened(tmp_path))


def test_a_record_file_that_ends_in_a_record(tmp_path: Path) -> None:
    records = [framed(tf_example({"number": n, "at": 1772341200000 + n})) for n in range(3)]
    write(tmp_path, "a.tfrecord", b"".join(records)[:-1])
    (rows, [dead]), _, _ = read(opened(tmp_path, "tfrecord", bad_rows="dead_letter"))
    assert rows == [0, 1]
    assert dead.location == {"file": "a.tfrecord", "record": 3, "row": 2}


def test_a_file_is_read_once_for_all_plans(tmp_path: Path) -> None:
    write(tmp_path, "a.json", line(1, 0))
    write(tmp_path, "b.json", line(2, 1))
    assert opened(tmp_path).scan(SPANS).storage_calls == 3
    assert opened(tmp_path).scan(SPANS).storage_calls == 1
    other = {"compression": "none", "path": "data"}
    assert opened(tmp_path, options=other).scan(SPANS).storage_calls == 3


def test_a_file_that_is_empty_by_now_has_no_times(tmp_path: Path) -> None:
    """Whoever reads it says that it has changed: planning must only get that far."""
    write(tmp_path, "a.json", b"")
    source: Any = opened(tmp_path)
    times = source.planner().group_times("a.json", 0, None)
    assert rows_by_span(Spans(SPANS), times, 0, 0, 0) == []


def test_by_path_nothing_is_decoded_to_be_counted(tmp_path: Path) -> None:
    write(tmp_path, "2026-03-01T06.csv", b"number,at,word\nno number,soon,x\n2,,y\n")
    options = {"path": "data", "window_path": "{date:%Y-%m-%dT%H}.csv"}
    source = opened(tmp_path, "csv", options=options, bad_rows="dead_letter")
    assert source.scan(SPANS).tasks["rows"].to_pylist() == [2]
    _, (rows, [dead]), _ = read(source)
    assert (rows, dead.location["line"], dead.row) == ([2], 2, '"no number,soon,x"')


def test_names_say_the_delimiter(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"number,at,word\n1,2026-03-01T05:00Z,a\tb")
    write(tmp_path, "b.tsv.gz", compressed(b"number\tat\tword\n2\t2026-03-01T05:00Z\ta,b", ".gz"))
    assert [rows for rows, _ in read(opened(tmp_path, "csv"))] == [[1, 2], [], []]


def test_no_record_is_decoded_but_those_that_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one that kills its reader would kill who reads its neighbours, or be far ahead."""
    write(tmp_path, "a.json", b"\n\n".join(line(number, 1) for number in range(20)))
    source, decoded = opened(tmp_path), list[list[int]]()
    (task,) = tasks_of(source.scan(SPANS), SPANS, 1)
    decode = JsonLines.decode

    def noted(self: JsonLines, block: Block) -> Fitted:
        decoded.append(block.places.tolist())
        return decode(self, block)

    monkeypatch.setattr(JsonLines, "decode", noted)
    units = list(source.units(task, Position(0, 0)))
    assert (len(units), decoded) == (20, [])
    assert units[5].location == {"file": "a.json", "line": 11, "row": 5}
    list(source.open(source.before(task, units[5].end), units[5].first, ["number"], 8))
    assert decoded.pop() == [11]
    list(source.open(task, None, ["number"], 8))
    assert max(map(len, decoded)) <= 8


def test_what_is_left_of_a_cut_file_does_not_have_the_line_of_its_first_row(tmp_path: Path) -> None:
    """It is lost from where its reader died on."""
    write(tmp_path, "a.json", b"\n".join(line(number, number % 2) for number in range(10)))
    source = opened(tmp_path)
    (task,) = tasks_of(source.scan(SPANS), SPANS, 1)
    (unit,) = source.units(task, Position(0, 0))
    poison = Poison(source="clicks", task_id=task.task_id, unit=unit, reason="it kills")
    read = TaskProgress(position=Position(0, 4), rows_read=2)
    found = read_around(source, task, read, ["number"], 3, [poison])
    (dead,) = (row for chunk in found for row in chunk.dead)
    assert (dead.location, dead.rows) == ({"file": "a.json", "row": 4}, 3)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_bucket_with_folders_of_hours(
    kind: str, tmp_path: Path, s3_server: S3Server, s3_access: None
) -> None:
    bucket = s3_server.new_bucket()

    def put(hour: int, count: int) -> None:
        key = f"data/2026-03-01/{5 + hour:02d}/a.{kind}.gz"
        content = compressed(WRITERS[kind](rows(hour, range(count))), ".gz")
        s3_server.client.put_object(Bucket=bucket, Key=key, Body=content)

    for hour in range(len(SPANS)):
        put(hour, 10 + hour)
    options = {
        "path": f"s3://{bucket}/data",
        "storage": {"endpoint_url": f"http://{s3_server.endpoint}"},
        "window_path": "{date}/{hour}/*",
    }
    columns = {"number": "int", "word": "string"}
    source = opened(tmp_path, kind, options=options, columns=columns, event_time=None)
    assert [found for found, _ in read(source)] == [[*range(10 + hour)] for hour in range(3)]
    scan = source.scan(SPANS[1:2])
    assert source.look(SPANS[1:2]).fingerprints == scan.fingerprints
    (task,) = tasks_of(scan, SPANS[1:2], 0)
    chunks = list(source.open(task, Position(0, 4), ["number"], 3))
    assert numbers(chunks) == [*range(4, 11)]
    put(1, 12)
    with pytest.raises(DataError, match=r"03-01/06/a.*changed after it was planned.*run window"):
        list(source.open(task, None, ["number"], 3))


def test_what_a_declaration_may_not_say(tmp_path: Path) -> None:
    for wrong in ({"delimiter": '"'}, {"names": []}, {"compression": "rar"}, {"window_path": "x"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            opened(tmp_path, "csv", options={"path": "data", **wrong})
    with pytest.raises(ConfigError, match=r"converted to Parquet .*docs/write-a-source\.md"):
        opened(tmp_path, "orc")
