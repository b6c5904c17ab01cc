"""Footers that kill the process that reads them are found, without affecting other files."""

from __future__ import annotations

import re
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from support.parquet_files import contradict_types
from support.parquet_source import START, days, source, table, write

from forebay.datatasks.sources.common.cautious import child
from forebay.datatasks.sources.common.row_groups.planner import Footer
from forebay.datatasks.sources.parquet import footer_process, footer_reader, footers
from forebay.datatasks.sources.parquet.footer_reader import COMMAND, FooterAnswer, FooterReader
from forebay.datatasks.sources.parquet.footers import read_footers
from forebay.errors import DataError, InfrastructureError
from forebay.testing.source_suite import tasks_of

pytestmark = pytest.mark.usefixtures("footer_children")
ABORTS = "ended by SIGABRT: what():  ColumnMetaData type does not match"
# Does what the bytes that it is sent say, and answers with no row groups.
TOY = """
    import json, os, signal, sys
    ruined, read = False, 0
    while line := sys.stdin.buffer.readline():
        content = sys.stdin.buffer.read(json.loads(line)["bytes"]).decode()
        if content.startswith("signal "):
            os.kill(os.getpid(), int(content.split()[1]))
        if content.startswith("say "):
            print(content[4:], file=sys.stderr, flush=True)
            os.abort()
        if content == "exit":
            sys.exit("no wish to go on")
        if ruined and content != "ruin":
            os.abort()
        read += 1
        if content.startswith("kills ") and read == 30 and len(os.listdir(content[6:])) < 2:
            open(f"{content[6:]}/{os.getpid()}", "x")
            os.kill(os.getpid(), signal.SIGKILL)
        ruined = ruined or content == "ruin"
        if content.startswith("once ") and not os.path.exists(content[5:]):
            open(content[5:], "x")
            os.kill(os.getpid(), signal.SIGABRT)
        answers = {"names": json.dumps({"error": " ".join(sorted(os.environ))}), "odd": "[]"}
        print(answers.get(content, "{}"), flush=True)
"""


def toy_reader() -> FooterReader:
    return FooterReader(None, command=[sys.executable, "-c", textwrap.dedent(TOY)])


def answers_of(reader: FooterReader, contents: dict[str, bytes]) -> list[FooterAnswer | str]:
    return reader.read(list(contents), contents.__getitem__, lambda _path, answer, _tail: answer)


def errors_of(contents: dict[str, str], reader: FooterReader | None = None) -> list[str]:
    tails = {path: content.encode() for path, content in contents.items()}
    with reader or toy_reader() as asked:
        return [each if isinstance(each, str) else "" for each in answers_of(asked, tails)]


@contextmanager
def opened(path: str) -> Iterator[str]:
    yield path


def files(root: Path, count: int, hostile: set[int]) -> list[str]:
    paths = [write(root / f"{number}.parquet", table([START])) for number in range(count)]
    for number in hostile:
        contradict_types(paths[number], "at")
    return [str(path) for path in paths]


def test_a_footer_that_aborts_is_named_and_others_are_read(tmp_path: Path) -> None:
    before = psutil.Process().children()
    paths = files(tmp_path, 40, {0, 17, 39})
    found = read_footers(paths, opened, str, "at")
    bad = {number: each for number, each in enumerate(found) if isinstance(each, str)}
    assert set(bad) == {0, 17, 39}
    assert all(ABORTS in reason for reason in bad.values())
    assert sum(int(each.rows.sum()) for each in found if isinstance(each, Footer)) == 37
    assert set(psutil.Process().children()) <= set(before)


@pytest.mark.guarantee(
    "a Parquet footer kills whoever parses it while a window is planned",
    "red with the file and the signal, or a dead letter by policy; the other files are planned",
)
@pytest.mark.parametrize("policy", ["fail", "dead_letter"])
def test_the_policy_of_the_source_decides(tmp_path: Path, policy: str) -> None:
    names = files(tmp_path / "data", 3, {1})
    hostile = source(tmp_path, bad_rows=policy)
    if policy == "fail":
        with pytest.raises(DataError, match=r"data/1\.parquet cannot be read: .*SIGABRT.*repair"):
            hostile.scan(days(1))
        return
    spans = days(1)
    (task,) = tasks_of(hostile.scan(spans), spans, 0)
    lost = {f"{each.path}": each.rows for each in task.ranges if each.end == each.first}
    assert lost == {Path(names[1]).name: 1}
    chunks = list(hostile.open(task, None, ["n"], 100))
    assert [row.location["file"] for chunk in chunks for row in chunk.dead] == ["1.parquet"]
    assert sum(chunk.batch.num_rows for chunk in chunks) == 2


def test_no_file_starts_no_child() -> None:
    assert errors_of({}, FooterReader(None, command=["/nowhere"])) == []
    with pytest.raises(InfrastructureError, match="cannot be started"):
        errors_of({"a": ""}, FooterReader(None, command=["/nowhere"]))


def test_a_file_that_ruins_the_child_for_later_ones_is_blamed() -> None:
    contents = {f"{number}": "sound" for number in range(20)} | {"r": "ruin", "v": "x", "w": "x"}
    names = list(contents)
    bad = {name for name, error in zip(names, errors_of(contents), strict=True) if error}
    assert bad == {"r"}


@pytest.mark.parametrize("files", [footer_reader.FILES_OF_A_CHILD, 3])
def test_several_of_them_are_all_blamed(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footer_reader, "FILES_OF_A_CHILD", files)
    contents = {"a": "ruin", "b": "x", "c": "signal 11", "d": "ruin", "e": "x", "f": "x"}
    found = dict(zip(contents, errors_of(contents), strict=True))
    assert {name for name, error in found.items() if error} == {"a", "c", "d"}
    assert found["c"].endswith("ended by SIGSEGV")


def test_last_words_are_of_the_child_that_died() -> None:
    first, second = errors_of({"a": "say boo", "b": "signal 11"})
    assert first.endswith("ended by SIGABRT: boo")
    assert second.endswith("ended by SIGSEGV")


def test_to_be_killed_once_says_nothing_of_a_file(tmp_path: Path) -> None:
    before = psutil.Process().children()
    with toy_reader() as reader:
        assert answers_of(reader, {"a": b"x"}) == [FooterAnswer()]
        (process,) = [one for one in psutil.Process().children() if one not in before]
        process.send_signal(signal.SIGKILL)
        while process.status() != psutil.STATUS_ZOMBIE:  # a wait would take it from its parent
            time.sleep(0.01)
        assert answers_of(reader, {"b": b"x"}) == [FooterAnswer()]
    killed = "the process that read its footer was ended by SIGKILL"
    assert errors_of({"a": "signal 9", "b": "x"}) == [killed, ""]


def test_kills_from_outside_say_nothing_of_the_files_before(tmp_path: Path) -> None:
    assert set(errors_of(dict.fromkeys(map(str, range(50)), f"kills {tmp_path}"))) == {""}


def test_a_crash_that_does_not_come_again_is_nobodys(tmp_path: Path) -> None:
    assert errors_of({"a": "x", "b": f"once {tmp_path / 'b'}", "c": "x"}) == ["", "", ""]
    often = {str(number): f"once {tmp_path}/{number}" for number in range(6)}
    with pytest.raises(InfrastructureError, match="nothing in it explains that"):
        errors_of({"first": "x"} | often)


def test_too_many_of_them_end_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footer_reader, "DEATHS_MAX", 2)
    with pytest.raises(DataError, match=r"c: .*SIGSEGV, as for 2 other files"):
        errors_of(dict.fromkeys("abcd", "signal 11"))


def test_a_child_that_ends_by_itself_is_no_fault_of_a_file() -> None:
    with pytest.raises(InfrastructureError, match="exit code 1: no wish to go on"):
        errors_of({"a": "exit"})


def test_what_no_child_should_say_is_bad_data() -> None:
    (error,) = errors_of({"a": "odd"})
    assert error.startswith("its footer cannot be understood")


def test_the_child_has_no_key_of_the_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    monkeypatch.setenv("FOREBAY_DATABASE", "planted")
    (names,) = errors_of({"a": "names"})
    assert "PATH" in names
    assert not {"AWS_SECRET_ACCESS_KEY", "FOREBAY_DATABASE"} & set(names.split())


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(60)",  # reads nothing, and the pipe is full
        "os.close(1); time.sleep(60)",
        "sys.stdin.buffer.readline()\nwhile True: os.write(1, b'x'); time.sleep(0.01)",
    ],
)
def test_a_child_without_an_answer_is_not_waited_for_long(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_reader, "_SECONDS_MAX", 0.2)
    command = [sys.executable, "-c", f"import os, sys, time\n{code}"]
    with pytest.raises(InfrastructureError, match=r"has not answered for 0\.2 s"):
        errors_of({"a": "x" * 1_000_000}, FooterReader(None, command=command))


def test_what_a_child_says_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_ANSWER_BYTES_MAX", 1_000_000)
    command = [sys.executable, "-c", "while True: print(end='x' * 65536)"]
    with pytest.raises(InfrastructureError, match="and at most 1,000,000 are an answer"):
        errors_of({"a": "x"}, FooterReader(None, command=command))


LITTLE_MEMORY = """
    import psutil
    it.MEMORY_BYTES = psutil.Process().memory_info().vms + (8 << 20)
"""
ENDLESS = """
    it.CPU_SECONDS = 1
    def parsed(*_, **__):
        while True: pass
    it.parsed = parsed
"""


@pytest.mark.parametrize(
    ("change", "reason"), [(LITTLE_MEMORY, "alloc|memory|SIGABRT"), (ENDLESS, "more than 60 s")]
)
def test_memory_and_time_are_bounded(tmp_path: Path, change: str, reason: str) -> None:
    wide = pa.table({f"column-{number}": range(30) for number in range(1000)})
    path = str(write(tmp_path / "wide.parquet", wide, row_group_size=1))
    tail = footers.footer_bytes(opened, path)
    name = footer_process.__name__
    code = f"import {name} as it\n{textwrap.dedent(change)}\nit.main()"
    with FooterReader(None, command=[*COMMAND[:2], "-c", code]) as reader:
        (found,) = answers_of(reader, {"a": tail})
    assert re.search(reason, str(found))
    assert COMMAND[2:] == ("-m", name)


def test_a_footer_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footers, "FOOTER_BYTES_MAX", 100)
    (reason,) = read_footers(files(tmp_path, 1, set()), opened, str, "at")
    assert isinstance(reason, str)
    assert "at most 100 are read" in reason


def test_ctrl_c_is_not_for_the_process_that_reads_footers(tmp_path: Path) -> None:
    """A terminal sends it to both; whoever asked ends the other one, and no file is to blame."""
    before = psutil.Process().children()
    path = write(tmp_path / "a.parquet", table([START]))
    tail = Path(path).read_bytes()
    with FooterReader(None) as reader:
        (first,) = answers_of(reader, {"a": tail})
        (process,) = [one for one in psutil.Process().children() if one not in before]
        process.send_signal(signal.SIGINT)
        assert answers_of(reader, {"a": tail}) == [first]
        assert process.is_running()
    assert isinstance(first, FooterAnswer)
    assert [rows for rows, *_ in first.groups] == [1]
