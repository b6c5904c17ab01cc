"""Dead letters of a window: written by executors, each reported once, gathered for the store."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from support.letters import letter, task

from forebay.errors import InfrastructureError
from forebay.executors.window_files.dead_letters import (
    DEAD_FOLDER,
    DeadLetter,
    DeadLetterWriter,
    gather_letters,
    gathered_letters,
    read_letters,
)

FILE = "clicks-3.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "g2"
    made.mkdir()
    return made


def rows(letters: list[DeadLetter]) -> list[object]:
    return [each.location["row"] for each in letters]


def test_dead_letters_are_told_once_and_outlive_a_torn_line(folder: Path) -> None:
    writer = DeadLetterWriter(folder)
    written = [letter(row, '{"user": "ü"}') for row in range(3)]
    writer.write(task(), written[:2])
    file = folder / DEAD_FOLDER / FILE
    file.write_bytes(file.read_bytes() + b'{"source": "cli')
    writer.write(task(), written)
    letters = list(read_letters(folder))
    assert rows(letters) == [0, 1, 2]
    first = letters[0]
    assert (first.source, first.window, first.generation) == ("clicks", "2026-03-01", 2)
    assert first.row == {"user": "ü"}
    one = {"source": "a", "window": "w", "generation": 1, "location": {}, "reason": "bad"}
    assert DeadLetter.model_validate(one).rows == 1


@pytest.mark.parametrize("depth", [1, 100, 190, 198, 199, 200, 201, 254, 255, 300, 990])
def test_a_row_of_any_depth_has_a_letter(folder: Path, depth: int) -> None:
    text = "[" * depth + "]" * depth
    DeadLetterWriter(folder).write(task(), [letter(0, text)])
    (found,) = read_letters(folder)
    assert json.dumps(found.row) == text or found.row == text
    assert gather_letters(folder, folder / "all") == {"clicks": 1}
    assert list(gathered_letters(folder / "all")) == [found]


@pytest.mark.parametrize(
    "text", ['{"user": "\\ud800"}', '{"\\udfff": 1}', "[NaN, -Infinity, 1e999]"]
)
def test_a_row_that_is_not_quite_json_has_a_letter(folder: Path, text: str) -> None:
    DeadLetterWriter(folder).write(task(), [letter(0, text), letter(1)])
    assert rows(list(read_letters(folder))) == [0, 1]


def test_what_the_disk_refuses_is_named(folder: Path) -> None:
    (folder / DEAD_FOLDER).write_text("a file where a folder should be")
    with pytest.raises(InfrastructureError, match=r"dead: .*File exists"):
        DeadLetterWriter(folder).write(task(), [letter(0)])


def test_a_window_that_is_trained_gets_no_more_letters(folder: Path) -> None:
    folder.rmdir()
    with pytest.raises(InfrastructureError, match=r"g2 is gone, .* window 2026-03-01 was trained"):
        DeadLetterWriter(folder).write(task(), [letter(0)])
    assert not folder.exists()


def test_dead_letters_hold_rows_as_far_as_they_were_read(folder: Path) -> None:
    writer = DeadLetterWriter(folder)
    writer.write(task(), [])
    assert list(folder.iterdir()) == []
    texts = [None, '{"a": 1}', "half a ro", "[1]"]
    writer.write(task(), [letter(row, text, row + 1) for row, text in enumerate(texts)])
    found = list(read_letters(folder))
    assert [each.row for each in found] == [None, {"a": 1}, "half a ro", [1]]
    assert [each.rows for each in found] == [1, 2, 3, 4]
    assert ((folder / DEAD_FOLDER / FILE).read_bytes().count(b"\n"), letter(0).rows) == (4, 1)


def test_letters_of_several_tasks_are_all_told(folder: Path, tmp_path: Path) -> None:
    """Files of two sources, below folders of their own, may have the same name."""
    writer = DeadLetterWriter(folder)
    for read in (task(3), task(4), task(3, "history")):
        writer.write(read, [letter(7)])
        writer.write(read, [letter(7), letter(8)])
    assert rows(list(read_letters(folder))) == [7, 8] * 3
    assert gather_letters(folder, tmp_path / "gathered")
    gathered = list(gathered_letters(tmp_path / "gathered"))
    assert gathered == list(read_letters(folder))
    assert [each.source for each in gathered[::2]] == ["clicks", "clicks", "history"]


def test_without_a_letter_nothing_is_gathered(folder: Path, tmp_path: Path) -> None:
    assert not gather_letters(folder, tmp_path / "gathered")
    (folder / DEAD_FOLDER).mkdir()
    (folder / DEAD_FOLDER / FILE).write_bytes(b'{"source": "cli')
    assert not gather_letters(folder, tmp_path / "gathered")
    assert not (tmp_path / "gathered").exists()


def test_what_is_gathered_is_whole_and_does_not_change(folder: Path, tmp_path: Path) -> None:
    writer, target = DeadLetterWriter(folder), tmp_path / "gathered"
    for number in (3, 4):
        writer.write(task(number), [letter(0, '{"a": NaN}', 5)])
    for file in (folder / DEAD_FOLDER).iterdir():
        file.write_bytes(file.read_bytes().removesuffix(b"\n"))  # as a kill may leave it
    target.mkdir()
    (target / ".letters.jsonl.7").write_bytes(b"what a killed trainer left")
    assert gather_letters(folder, target) == {"clicks": 10}
    assert [path.name for path in target.iterdir()] == ["letters.jsonl"]
    first = list(gathered_letters(target))
    assert [each.rows for each in first] == [5, 5]
    writer.write(task(), [letter(1)])  # by an executor that slept past its lease
    assert [str(each) for each in gathered_letters(target)] == [str(each) for each in first]
    assert gather_letters(folder, target), "a trainer that is started again gathers anew"
    assert len(list(gathered_letters(target))) == 3


def test_letters_hold_rows_and_are_private_files(folder: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DeadLetterWriter(folder).write(task(), [letter(0)])
        gather_letters(folder, tmp_path / "gathered")
    finally:
        os.umask(before)
    files = [folder / DEAD_FOLDER / FILE, *(tmp_path / "gathered").iterdir()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600, 0o600]


def test_a_reason_shows_no_secret(folder: Path) -> None:
    reason = "postgresql://me:hunter2@db/x refuses the row"
    DeadLetterWriter(folder).write(task(), [letter(0).model_copy(update={"reason": reason})])
    (found,) = read_letters(folder)
    assert found.reason == "postgresql://me:***@db/x refuses the row"


REASON = (
    "not kept: the source's dead letters have reached 1,000 bytes in this window "
    "(dead_letter_bytes_max)"
)


def bounded(folder: Path, most: int = 1000) -> DeadLetterWriter:
    return DeadLetterWriter(folder, {"clicks": most})


def counted(folder: Path, target: Path) -> tuple[int, int, list[str]]:
    """Rows with a letter, all dead rows, and why some have none."""
    rows, letters = gather_letters(folder, target)["clicks"], list(gathered_letters(target))
    letters = [each for each in letters if each.source == "clicks"]
    kept = [each for each in letters if not each.left_out]
    return sum(each.rows for each in kept), rows, [each.reason for each in letters[len(kept) :]]


def test_letters_beyond_the_bound_are_counted(folder: Path, tmp_path: Path) -> None:
    writer = bounded(folder)
    for first in range(0, 1000, 100):
        writer.write(task(), [letter(row, "{}") for row in range(first, first + 100)], first)
    kept, rows, reasons = counted(folder, tmp_path / "gathered")
    assert 3 < kept < 20
    assert (rows, reasons) == (1000, [REASON])
    assert (tmp_path / "gathered" / "letters.jsonl").stat().st_size < 2000
    (last,) = [each for each in read_letters(folder) if each.left_out]
    assert (last.rows, last.location, last.source) == (1000 - kept, {}, "clicks")


@pytest.mark.guarantee(
    "a source has more dead letters than `dead_letter_bytes_max` holds",
    "nothing; all are counted, and the last letter says how many are left out",
)
@pytest.mark.parametrize("again", [0, 5, 50, 99])
def test_a_task_that_is_read_again_leaves_each_row_out_once(
    folder: Path, tmp_path: Path, again: int
) -> None:
    """By another process, from another row on, in other parts."""
    for first in range(0, 100, 10):
        bounded(folder).write(task(), [letter(row) for row in range(first, first + 10)], first)
    for first in range(again, 100, 7):
        dead = [letter(row) for row in range(first, min(first + 7, 100))]
        bounded(folder).write(task(), dead, first)
    kept, rows, reasons = counted(folder, tmp_path / "gathered")
    assert 0 < kept < 100
    assert (rows, reasons) == (100, [REASON])


def test_the_bound_is_of_all_tasks_of_a_source(folder: Path, tmp_path: Path) -> None:
    writers = [bounded(folder) for _ in range(3)]
    for number in range(30):
        writers[number % 3].write(task(number), [letter(row, "{}") for row in range(10)])
        writers[0].write(task(number, "other-clicks"), [letter(0, rows=2)])
    size = sum(path.stat().st_size for path in (folder / DEAD_FOLDER).glob("clicks-*"))
    kept, rows, _ = counted(folder, tmp_path / "gathered")
    assert (rows, kept < 20) == (300, True)
    assert size < 30 * 400
    others = [each for each in read_letters(folder) if each.source == "other-clicks"]
    assert sum(each.rows for each in others) == 60
    assert not any(each.left_out for each in others)


def test_no_letter_at_all(folder: Path, tmp_path: Path) -> None:
    bounded(folder, 0).write(task(), [letter(0, rows=7), letter(9)])
    assert counted(folder, tmp_path / "gathered")[:2] == (0, 8)


def test_a_range_of_rows_counts_as_such_where_it_is_left_out(folder: Path, tmp_path: Path) -> None:
    writer = bounded(folder, 300)
    dead = [letter(0, rows=5), letter(5, rows=10), letter(15, rows=100)]
    writer.write(task(), dead)
    writer.write(task(), dead[2:], 15)
    kept, rows, _ = counted(folder, tmp_path / "gathered")
    assert (kept, rows) == (15, 115)


def test_letters_that_are_lost_are_not_taken_for_left_out(folder: Path, tmp_path: Path) -> None:
    bounded(folder).write(task(), [letter(row) for row in range(100)])
    file = folder / DEAD_FOLDER / FILE
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    assert counted(folder, tmp_path / "gathered")[1] == 99


def test_what_is_long_is_cut(folder: Path) -> None:
    row = letter(0, '"' + "t" * 10**6 + '"').model_copy(update={"reason": "r" * 10**6})
    DeadLetterWriter(folder).write(task(), [row])
    (found,) = read_letters(folder)
    assert len(found.reason) == 1000
    assert isinstance(found.row, str)
    assert len(found.row) == 8000
