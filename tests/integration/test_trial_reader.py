"""The child that reads a suspected task: what it answers, its death, and what follows of it."""

from __future__ import annotations

import signal
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.data_path import DataPath
from support.killing_code import KillingCode, mark_segment, marked
from support.poisons import poison_of
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    clicks_source,
    history_source,
    rows_of_day,
    write_history,
    write_log,
)
from support.record_files import csv_rows
from support.there import there

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.cautious.child import ChildDiedError
from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.sources.common.cautious.search import PoisonSearch, ReaderDiedError
from forebay.datatasks.tasks import DataTask, Position, ReadUnit
from forebay.errors import DataError
from forebay.executors.driver.hazards import Hazards
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.suspicions import Suspicion
from forebay.executors.poison import trial
from forebay.executors.poison.examination import Examiner
from forebay.executors.poison.trial import Trial, TrialInVainError
from forebay.executors.wire.messages import Examined, Grant

ROWS = 480
HOURS = 24  # a segment each
START = Position(0, 0)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> DataPath:
    return planned(written(tmp_path_factory.mktemp("trial")))


@pytest.fixture(scope="module")
def task(path: DataPath) -> DataTask:
    return clicks(path)


def written(root: Path) -> Path:
    write_history(root / "data/history", FIRST_DAY - DAY, ROWS)
    write_log(root / "data/clicks", FIRST_DAY, ROWS, partitions=1)
    return root


def planned(root: Path, sources: dict[str, dict[str, Any]] | None = None) -> DataPath:
    made = DataPath.of(root, sources=sources)
    made.plan("2026-03-01", "2026-03-01")
    return made


def clicks(path: DataPath) -> DataTask:
    ledger = Ledger(path.home, "ads")
    plan, table = ledger.plan("2026-03-01", 1), ledger.tasks("2026-03-01", 1)
    (row,) = (n for n, name in enumerate(table["source"].to_pylist()) if name == "clicks")
    return ledger.data_task(table, row, plan)


def test_it_reads_units_around_poisons(path: DataPath, task: DataTask) -> None:
    known: list[Poison] = []
    with closing(Trial(path.link.arguments, task, 100, known, 60.0, crashed=True)) as trial:
        units = trial.units(START, 1000)
        assert len(units) == len(task.ranges) == HOURS
        assert trial.units(units[3].first, 2) == units[3:5]
        assert trial.units(units[-1].end, 2) == []
        assert trial.read(START, units[-1].end) == ROWS
        known.append(poison_of(task, units[4]))
        assert trial.read(START, units[-1].end) == ROWS - (task.ranges[4].rows or 0)
        assert trial.read(units[4].first, units[4].end) == 0


@pytest.mark.parametrize("crashed", [False, True])
def test_memory_explains_kills_and_no_crash(
    path: DataPath, task: DataTask, *, crashed: bool
) -> None:
    made = Trial(path.link.arguments, task, 100, [], 60.0, crashed=crashed, memory_bytes=1)
    expected = TrialInVainError if crashed else ReaderDiedError
    with closing(made), pytest.raises(expected, match="GiB of memory"):
        made.read(START, Position(1, 0))


def test_a_kill_where_too_little_memory_is_free_says_nothing(
    path: DataPath, task: DataTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> bytes:
        raise ChildDiedError(signal.SIGKILL, "")

    monkeypatch.setattr(trial.ReadingChild, "answer", killed)
    for free_mib, expected in ((1023, TrialInVainError), (1024, ReaderDiedError)):
        monkeypatch.setattr(trial, "available_bytes", lambda mib=free_mib: mib << 20)
        made = Trial(path.link.arguments, task, 100, [], 60.0, crashed=False)
        with closing(made), pytest.raises(expected, match="SIGKILL"):
            made.read(START, Position(1, 0))


@pytest.mark.parametrize(("deadline", "says"), [(0.0, "no answer"), (60.0, "cannot be understood")])
def test_no_answer_and_one_that_is_nonsense_say_nothing(
    path: DataPath, task: DataTask, monkeypatch: pytest.MonkeyPatch, deadline: float, says: str
) -> None:
    if deadline:
        monkeypatch.setattr(trial.ReadingChild, "answer", lambda *_: b"[]\n")
    made = Trial(path.link.arguments, task, 100, [], deadline, crashed=True)
    with closing(made), pytest.raises(TrialInVainError, match=says):
        made.read(START, Position(1, 0))


def test_a_child_that_computes_for_ever_dies_and_one_that_waits_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(written(tmp_path))
    KillingCode(project, tmp_path / "code", number=0)
    mark_segment(project, 7)
    path = planned(tmp_path)
    monkeypatch.setenv("PYTHONPATH", project.environment["PYTHONPATH"])
    monkeypatch.setattr(trial, "_BUSY_PART", 0.0)
    monkeypatch.setattr(trial, "_BUSY_SECONDS_MIN", 0.2)
    with closing(Trial(path.link.arguments, clicks(path), 100, [], 60.0, crashed=False)) as reading:
        for stopped, expected, says in (
            (False, ReaderDiedError, "more than .* s of CPU time"),
            (True, TrialInVainError, "no answer"),
        ):
            assert reading.read(START, Position(7, 0)) > 0
            monkeypatch.setattr(reading, "_deadline", 5.0)
            if stopped:
                there(reading._child._child).process.send_signal(signal.SIGSTOP)
            with pytest.raises(expected, match=says):
                reading.read(Position(7, 0), Position(8, 0))
            monkeypatch.setattr(reading, "_deadline", 60.0)


def test_of_a_file_of_records_one_record_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(written(tmp_path))
    KillingCode(project, tmp_path / "code")
    monkeypatch.setenv("PYTHONPATH", project.environment["PYTHONPATH"])
    content = b"\n" + csv_rows(marked(rows_of_day(FIRST_DAY, ROWS, 1), 5))
    project.log.with_name("clicks.csv").write_bytes(content)
    declared = clicks_source(kind="csv", options={"path": "data/clicks.csv"})
    path = planned(tmp_path, {"history": history_source(), "clicks": declared})
    task, known = clicks(path), list[Poison]()

    def found(unit: ReadUnit, _reason: str) -> None:
        known.append(poison_of(task, unit))

    with closing(Trial(path.link.arguments, task, 100, known, 60.0, crashed=True)) as trial:
        PoisonSearch(trial, 200, found, found).run(START)
        assert trial.read(START, Position(1, 0)) == ROWS - 1
    assert [each.unit.location for each in known] == [{"file": "clicks.csv", "line": 8, "row": 5}]


def test_what_kills_is_red_or_set_aside_by_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(written(tmp_path))
    code = KillingCode(project, tmp_path / "code")
    file = mark_segment(project, 7).name
    path = planned(tmp_path)
    task, spec = clicks(path), path.sources["clicks"]
    decoding = JobFolder(path.job_dir).suspicions.mark(0, task).decoding(START)
    decoding.__enter__()  # and its process is gone
    suspicions = JobFolder(path.job_dir).suspicions
    assert suspicions.executor_ended(0, signal.SIGSEGV, "end")
    monkeypatch.setenv("PYTHONPATH", project.environment["PYTHONPATH"])
    hazards = Hazards(suspicions, partial(path.home.model, "ads", "main"))

    def report(task: DataTask, suspicion: Suspicion, poison: Poison | None) -> None:
        news = {"executor": 0, "instance": "i", "suspicion": suspicion, "poison": poison}
        hazards.examined(Examined(task=task, **news))

    def poisons(spec: SourceSpec) -> list[Poison]:
        known, suspicion = hazards.poisons(task), hazards.suspicion(task)
        grant = Grant(task=task, attempt=1, failures=0, progress=None, poisons=known)
        grant = grant.model_copy(update={"suspicion": suspicion})
        return Examiner(path.link, report, 60.0).poisons(grant, spec, 100)

    with pytest.raises(DataError, match=rf"'clicks'.*{file}.*SIGABRT.*bad_rows: dead_letter"):
        poisons(spec)
    assert suspicions.of(task) is not None, "whoever reads it next is warned too"

    kept = spec.model_copy(update={"bad_rows": "dead_letter"})
    (found,) = poisons(kept)
    assert found.unit.first == Position(7, 0)
    assert str(found.unit.location["file"]).endswith(file)
    assert suspicions.of(task) is None
    assert not suspicions.is_in_vain("end")
    deaths = code.deaths()
    assert poisons(kept) == [found]
    assert code.deaths() == deaths, "nobody has to die of it again"
    with pytest.raises(DataError, match=file):
        poisons(spec)
