"""Dead letters of a window: lines of rows, and the file in which their trainer keeps them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from support.letters import letter, letter_file, letters_of, task

from forebay.datatasks.tasks import DeadRow
from forebay.errors import InfrastructureError
from forebay.executors.window_files.dead_letters import (
    DEAD_FOLDER,
    LETTERS_NAME,
    DeadLetter,
    SealedLetters,
    read_letters,
)


def kept(folder: Path) -> list[DeadLetter]:
    return list(read_letters(folder / DEAD_FOLDER))


def written(folder: Path, *dead: DeadRow) -> list[DeadLetter]:
    letter_file(folder).append(letters_of(task(), *dead))
    return kept(folder)


def numbers(letters: list[DeadLetter]) -> list[object]:
    return [each.location["row"] for each in letters]


def test_a_letter_says_where_its_row_was(tmp_path: Path) -> None:
    (found,) = written(tmp_path, letter(7, '{"user": "ü"}'))
    assert (found.source, found.window, found.generation) == ("clicks", "2026-03-01", 2)
    assert (found.location, found.row) == ({"file": "a.parquet", "row": 7}, {"user": "ü"})
    one = {"source": "a", "window": "w", "generation": 1, "location": {}, "reason": "bad"}
    assert DeadLetter.model_validate({**one, "of": "another release"}).rows == 1


@pytest.mark.parametrize("depth", [1, 100, 190, 198, 199, 200, 201, 254, 255, 300, 990])
def test_a_row_of_any_depth_has_a_letter(tmp_path: Path, depth: int) -> None:
    text = "[" * depth + "]" * depth
    (found,) = written(tmp_path, letter(0, text))
    assert json.dumps(found.row) == text or found.row == text


@pytest.mark.parametrize(
    "text", ['{"user": "\\ud800"}', '{"\\udfff": 1}', "[NaN, -Infinity, 1e999]"]
)
def test_a_row_that_is_not_quite_json_has_a_letter(tmp_path: Path, text: str) -> None:
    assert numbers(written(tmp_path, letter(0, text), letter(1))) == [0, 1]


def test_what_the_disk_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / DEAD_FOLDER).write_text("a file where a folder should be")
    with pytest.raises(InfrastructureError, match=r"dead: .*File exists"):
        written(tmp_path, letter(0))


def test_dead_letters_hold_rows_as_far_as_they_were_read(tmp_path: Path) -> None:
    assert written(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    texts = [None, '{"a": 1}', "half a ro", "[1]"]
    found = written(tmp_path, *(letter(row, text, row + 1) for row, text in enumerate(texts)))
    assert [each.row for each in found] == [None, {"a": 1}, "half a ro", [1]]
    assert [each.rows for each in found] == [1, 2, 3, 4]


def test_letters_hold_rows_and_are_private_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        written(tmp_path, letter(0))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / DEAD_FOLDER / LETTERS_NAME).stat().st_mode) == 0o600


def test_a_reason_shows_no_secret(tmp_path: Path) -> None:
    reason = "postgresql://me:hunter2@db/x refuses the row"
    (found,) = written(tmp_path, letter(0).model_copy(update={"reason": reason}))
    assert found.reason == "postgresql://me:***@db/x refuses the row"


def test_what_is_long_is_cut(tmp_path: Path) -> None:
    row = letter(0, '"' + "t" * 10**6 + '"').model_copy(update={"reason": "r" * 10**6})
    (found,) = written(tmp_path, row)
    assert len(found.reason) == 1000
    assert isinstance(found.row, str)
    assert len(found.row) == 8000


def test_what_came_after_a_seal_is_cut_off(tmp_path: Path) -> None:
    file = letter_file(tmp_path)
    assert file.sealed() == SealedLetters()
    file.append(letters_of(task(), letter(0, rows=3), letter(5)))
    sealed = file.sealed()
    file.append(letters_of(task(4), letter(8)))
    with (tmp_path / DEAD_FOLDER / LETTERS_NAME).open("ab") as stream:
        stream.write(b'{"source": "cli')  # killed while it wrote
    assert numbers(kept(tmp_path)) == [0, 5, 8], "for who looks at it meanwhile"
    letter_file(tmp_path, sealed=sealed).append(letters_of(task(4), letter(9)))
    assert numbers(kept(tmp_path)) == [0, 5, 9]
    letter_file(tmp_path)
    assert kept(tmp_path) == []


@pytest.mark.guarantee(
    "a source has more dead letters than `dead_letter_bytes_max` holds",
    "nothing; all are counted, and the last letter says how many are left out",
)
@pytest.mark.parametrize("most", [0, 1000])
def test_letters_beyond_the_bound_are_counted_across_restarts(tmp_path: Path, most: int) -> None:
    file = letter_file(tmp_path, most)
    for first in range(0, 100, 10):
        file = letter_file(tmp_path, most, file.sealed())
        dead = [letter(row, rows=2) for row in range(first, first + 10)]
        file.append(letters_of(task(), *dead, first=2 * first))
        file.append(letters_of(task(0, "other"), letter(first)))
    file.end("2026-03-01", 2)
    found = [each for each in kept(tmp_path) if each.source == "clicks"]
    assert sum(each.rows for each in found) == 200
    last = found[-1]
    assert (last.location, last.row, last.rows) == ({}, None, 200 - 2 * (len(found) - 1))
    assert last.reason == (
        f"not kept: the source's dead letters have reached {most:,} bytes in this window "
        "(dead_letter_bytes_max)"
    )
    assert len(found) == 1 if most == 0 else 3 < len(found) < 15
