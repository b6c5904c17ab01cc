"""A source's task: one scan for many windows, waiting."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from support.task_logs import lines_of
from support.toy_stage import ToyStage

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.datatasks.plans.listing_rows import ListingHead, store_listing
from forebay.datatasks.plans.plan import SourcePlan
from forebay.errors import DataError, InfrastructureError, NotReadyError
from forebay.home.database.format import record_format
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.operators.runs.airflow_runs import OtherRun
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages import source as module
from forebay.operators.stages.source import SourceOperator
from forebay.operators.triggers.ready import ReadyTrigger

GRID = WindowGrid(WindowSize.DAY)
KEY = "2026-03-05"
REQUEST = StageRequest("ads", "mine", "sources.clicks", GRID.parse(KEY), 1, 0, reprocess=False)


def listed(window: str = KEY, **told: Any) -> dict[str, Any]:
    return {"state": "listed", "window": window, "source": "clicks", "rows": 7, "tasks": 2, **told}


def waiting(seconds: float) -> dict[str, Any]:
    deadline = datetime.now(UTC) + timedelta(seconds=seconds)
    told = {"state": "waiting", "reason": "no marker", "deadline": deadline.isoformat()}
    return listed() | told


def other(day: int, state: str = "running") -> OtherRun:
    return OtherRun(f"run-{day}", state, GRID.parse(f"2026-03-{day:02}"), day)


class Place:
    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.toy = ToyStage.make(root / "toy")
        self.others: list[OtherRun] = []
        self.states: dict[str, str | None] = {}
        self.questions = 0

    def near(self, dag_id: str, window: Any, grid: Any, around: int) -> list[OtherRun]:
        assert (dag_id, window, around) == ("ads", REQUEST.window, 30)
        self.questions += 1
        return self.others

    def task_states(self, dag_id: str, run_ids: list[str], task_id: str) -> Any:
        assert task_id == "sources.clicks"
        return {run_id: self.states.get(run_id) for run_id in run_ids}

    def operator(self, grace: float = 0) -> SourceOperator:
        where = {"pipeline": "ads", "config": "/config", "python": self.toy.python}
        told: Any = {"source": "clicks", "windows_around": 30, "grace_seconds": grace}
        return SourceOperator(task_id="clicks", **where, **told)

    def answers(self, *answers: dict[str, Any]) -> None:
        self.toy.answer(source=[{"prints": answer} for answer in answers])

    def asked(self) -> Any:
        """Other windows that the first call of the stage was told."""
        call = self.toy.calls("source")[0]
        return json.loads(call[call.index("--asked") + 1])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    record_format(made.home)
    monkeypatch.setenv("FOREBAY_HOME", str(made.home.root))
    monkeypatch.setattr(module, "active_runs_near", made.near)
    monkeypatch.setattr(module, "task_states", made.task_states)
    monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 0.05)
    return made


def test_windows_that_wait_too_share_the_scan(place: Place) -> None:
    """Nearest first; not those whose source has been listed, and not the window itself."""
    place.others = [other(9, "queued"), other(6), other(4), other(2), other(5)]
    place.states = {"run-4": "success", "run-6": "running", "run-2": None}
    place.answers(listed())
    assert place.operator().work(REQUEST, {})["rows"] == 7
    (call,) = place.toy.calls("source")
    assert call[:5] == ["ads", KEY, "clicks", "--asked-by", "ads/mine#1"]
    assert place.asked() == [
        {"window": "2026-03-06", "asked_by": "ads/run-6#6"},
        {"window": "2026-03-02", "asked_by": "ads/run-2#2"},
        {"window": "2026-03-09", "asked_by": "ads/run-9#9"},
    ]


def found(place: Place, asked_by: str) -> None:
    """As a scan of another window stores what it found for this one."""
    day = datetime(2026, 3, 5, tzinfo=UTC)
    of = {"stream": "clicks", "source": "clicks", "feed": "stream", "data_from": day}
    counts = {"tasks": 1, "files": 1, "rows": 9}
    plan = SourcePlan.model_validate({**of, "data_to": day + timedelta(days=1), **counts})
    head = ListingHead(
        plan=plan, declared="", asked_by=asked_by, listed_at=day, storage_calls=1, windows_scanned=1
    )
    nothing = Stored(name="none", checksum="", size_bytes=0)
    database_of(place.home).transact(lambda rows: store_listing(rows, "ads", KEY, head, nothing))


def test_what_another_scan_has_found_is_only_fetched(place: Place) -> None:
    """Airflow is not asked about hundreds of runs once the listing of this pass is there."""
    found(place, "ads/mine#1")
    place.answers(listed(storage_calls=0))
    place.operator().work(REQUEST, {})
    assert place.questions == 0
    # One of an earlier pass is no answer to this one.
    found(place, "ads/mine#0")
    place.operator().work(REQUEST, {})
    assert place.questions == 1


def test_a_long_list_is_cut(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ASKED_BYTES_MAX", 120)
    place.others = [other(6), other(7), other(8)]
    place.answers(listed())
    said = lines_of(monkeypatch)
    place.operator().work(REQUEST, {})
    assert [each["window"] for each in place.asked()] == ["2026-03-06", "2026-03-07"]
    assert "waiting for a plan, too: 2 other windows; one scan serves all" in said
    monkeypatch.setattr(module, "_ASKED_BYTES_MAX", 10)
    place.operator().work(REQUEST, {})
    assert "--asked" not in place.toy.calls("source")[1]
    assert len([line for line in said if "waiting for a plan, too" in line]) == 1


def test_it_looks_again_within_the_grace(place: Place) -> None:
    place.answers(waiting(60), waiting(60), listed())
    assert place.operator(grace=10).work(REQUEST, {})["state"] == "listed"
    assert len(place.toy.calls("source")) == 3


def test_then_it_defers_until_the_deadline(place: Place) -> None:
    place.answers(waiting(500))
    with pytest.raises(TaskDeferred) as deferred:
        place.operator().work(REQUEST, {})
    trigger = deferred.value.trigger
    assert isinstance(trigger, ReadyTrigger)
    assert 450 < trigger.deadline - time.time() <= 500
    assert trigger.arguments[:5] == ["ads", KEY, "clicks", "--asked-by", "ads/mine#1"]
    assert (trigger.python, trigger.home) == (place.toy.python, str(place.home.root))
    assert 1_000 < deferred.value.timeout.total_seconds() <= 1_100
    assert deferred.value.method_name == "ready"


def test_looks_say_since_when_the_run_is_there(place: Place) -> None:
    """A listing of a run that was deleted, and had the same id, is no answer to either look."""
    place.answers(waiting(500))
    request = replace(REQUEST, since=datetime(2026, 3, 6, 8, 0, 0, 123000, tzinfo=UTC))
    with pytest.raises(TaskDeferred) as deferred:
        place.operator().work(request, {})
    [call] = place.toy.calls("source")
    for arguments in (call, deferred.value.trigger.arguments):
        assert arguments[5:7] == ["--since", "2026-03-06T08:00:00.123000Z"]


def test_past_the_deadline_the_stage_says_how_it_ends(place: Place) -> None:
    late = {"code": 2, "says": ["error: source clicks is not complete: no marker"]}
    place.toy.answer(source=[{"prints": waiting(0.1)}, late])
    with pytest.raises(NotReadyError, match="not complete: no marker"):
        place.operator(grace=60).work(REQUEST, {})


def test_bad_data_and_endless_waits_are_told(place: Place) -> None:
    place.toy.answer(source=[{"code": 3, "says": ["error: part.parquet is corrupt"]}])
    with pytest.raises(DataError, match=r"part\.parquet is corrupt"):
        place.operator().work(REQUEST, {})
    place.answers(waiting(1) | {"deadline": None})
    with pytest.raises(InfrastructureError, match="without a deadline"):
        place.operator().work(REQUEST, {})
