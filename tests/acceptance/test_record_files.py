"""From an empty directory with files as people have them to a model: two commands and one YAML."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.projects import rows_of_day
from support.record_files import WRITERS, compressed

from forebay.cli import run

PIPELINE = """\
dataset:
  window: 1d
  start: 2026-03-01
  end: 2026-03-03
  event_id: event
  label: {column: clicked}
  streams: {all: {sources: [views]}}
  features:
    user: {encode: hash, buckets: 100}
    price: {encode: numeric}
train: {paradigm: batch, minibatch_rows: 64}
"""
PLACES = {
    "json": "logs/date={day:%Y-%m-%d}/part-0.json.gz",
    "csv": "logs/{day:%Y%m%d}.csv",
    "tfrecord": "logs/all.tfrecord",
}


@pytest.mark.parametrize("kind", PLACES)
def test_files_become_a_model(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / ".forebay"))
    for day in (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)):
        path = Path(PLACES[kind].format(day=day))
        path.parent.mkdir(parents=True, exist_ok=True)
        content = compressed(WRITERS[kind](rows_of_day(day, 200, 3)), path.suffix)
        with path.open("ab") as file:
            file.write(content)
    assert run(["init", ".", "--from", f"{kind}://logs", "--name", "views"]) == 0
    Path("config/pipelines/clicks.yaml").write_text(PIPELINE)
    ended = run(["run", "clicks", "--from", "2026-03-01", "--to", "2026-03-02"])
    printed = capsys.readouterr()
    assert ended == 0, printed.out + printed.err
    assert run(["models", "ls", "clicks"]) == 0
    assert "2026-03-02" in capsys.readouterr().out
