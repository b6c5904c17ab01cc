"""The driver's journal survives torn writes and refuses damage in the middle."""

from __future__ import annotations

import resource
import signal
import zlib
from pathlib import Path

import pytest

from forebay.errors import InfrastructureError
from forebay.executors.driver import journal as module
from forebay.executors.driver.journal import Journal


def written(path: Path) -> list[dict[str, object]]:
    journal = Journal(path)
    records = journal.records
    journal.close()
    return records


def test_records_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "journal" / "driver.jsonl"
    journal = Journal(path)
    journal.append("driver", incarnation=1)
    journal.append("seal", window="w", step=7)
    journal.close()
    assert written(path) == [
        {"kind": "driver", "incarnation": 1},
        {"kind": "seal", "window": "w", "step": 7},
    ]


def test_a_torn_tail_never_counted_and_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "driver.jsonl"
    journal = Journal(path)
    journal.append("driver", incarnation=1)
    journal.append("driver", incarnation=2)
    journal.close()
    whole = path.read_bytes()
    for length in range(len(whole.splitlines(keepends=True)[0]), len(whole)):
        path.write_bytes(whole[:length])
        again = Journal(path)
        assert again.records == [{"kind": "driver", "incarnation": 1}]
        again.append("driver", incarnation=3)
        again.close()
        assert [record["incarnation"] for record in written(path)] == [1, 3]


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "driver.jsonl"
    journal = Journal(path)
    for number in range(3):
        journal.append("driver", incarnation=number)
    journal.close()
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InfrastructureError, match="jsonl:1 is damaged"):
        Journal(path)


def test_a_full_disk_is_an_error_and_leaves_no_half_record(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "driver.jsonl")
    journal.append("driver", incarnation=1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = (tmp_path / "driver.jsonl").stat().st_size
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, before[1]))
        with pytest.raises(InfrastructureError, match="journal cannot be written"):
            journal.append("seal", window="w" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    journal.append("seal", window="v")
    journal.close()
    assert [record["kind"] for record in written(tmp_path / "driver.jsonl")] == ["driver", "seal"]


def test_the_journal_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal" / "driver.jsonl"
    written(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_damage_before_the_last_record_is_told(tmp_path: Path) -> None:
    path = tmp_path / "driver.jsonl"
    journal = Journal(path)
    for number in range(3):
        journal.append("driver", incarnation=number)
    journal.close()
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"0" + second + third)
    with pytest.raises(InfrastructureError, match="jsonl:2 is damaged"):
        Journal(path)


def test_what_is_no_record_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "driver.jsonl"
    path.write_bytes(f"{zlib.crc32(b'[1]'):08x} [1]\n".encode() * 2)
    with pytest.raises(InfrastructureError, match="jsonl:1 is damaged"):
        Journal(path)


def test_one_driver_writes_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0)
    path = tmp_path / "driver.jsonl"
    journal = Journal(path)
    with pytest.raises(InfrastructureError, match="another driver writes"):
        Journal(path)
    journal.close()
    assert written(path) == []
