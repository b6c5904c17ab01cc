"""Messages in files: what was written, nothing, or an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.errors import DataError
from forebay.system.files.durable import write_atomically
from forebay.system.message import Message


class Note(Message):
    text: str


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert Note.of_file(tmp_path / "note.json") is None
    write_atomically(tmp_path / "note.json", Note(text="ä").model_dump_json())
    assert Note.of_file(tmp_path / "note.json") == Note(text="ä")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"text": 1}', b'{"text": "a", "b": 1}'])
def test_anything_else_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "note.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{path} is damaged: .*move it away"):
        Note.of_file(path)
