"""Pipelines over tables of this process, planned by the stages that Airflow's tasks call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval, Window
from forebay.datatasks.planning.lister import SourceLister
from forebay.datatasks.plans import plan_rows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.contract.base import Readiness, Scan
from forebay.datatasks.sources.memory.source import MEMORY, MemorySource
from forebay.executors.stages.plan import record_window
from forebay.executors.stages.results import RequestedWindow, SinkResult, SourceResult
from forebay.executors.stages.source import SourceStage
from forebay.executors.stages.target import LineTarget, StageTarget
from forebay.home.paths import Home

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class Stages:
    root: Path
    sources: dict[str, SourceSpec]
    pipeline: PipelineSpec
    now: datetime = START + timedelta(days=1000)
    scans: list[tuple[str, list[Interval]]] = field(default_factory=list)
    late: dict[str, datetime] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return Home(self.root / "home")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.home, "ads")

    @property
    def project(self) -> Project:
        config, pipelines = self.root / "config", {"ads": self.pipeline}
        return Project(self.root, config, self.sources, pipelines, [], {}, {})

    def window(self, number: int) -> Window:
        return self.pipeline.dataset.grid.at(START + number * DAY)

    def target(self, number: int) -> StageTarget:
        line = LineTarget(self.project, self.pipeline, self.home, "main")
        return line.at(self.window(number))

    def stage(self, number: int, source: str, since: datetime | None = None) -> SourceStage:
        return SourceStage(self.target(number), source, lambda: self.now, since)

    def lister(self, use: str, ahead: int = 99) -> SourceLister:
        given = (self.sources[use], self.root, self.ledger, lambda: self.now)
        return SourceLister(*given, ahead, lock_seconds=1.0)

    def source(
        self,
        number: int,
        source: str = "a",
        by: str = "r#0",
        asked: Sequence[tuple[int, str]] = (),
        since: datetime | None = None,
    ) -> SourceResult:
        return self.stage(number, source, since).list_window(by, self.asked(asked))

    def ready(
        self, number: int, source: str = "a", by: str = "r#0", since: datetime | None = None
    ) -> SourceResult:
        return self.stage(number, source, since).is_ready(by)

    def sink(self, number: int, by: str = "r#0", *, again: bool = False) -> SinkResult:
        return record_window(self.target(number), asked_by=by, again=again)

    def asked(self, asked: Sequence[tuple[int, str]]) -> list[RequestedWindow]:
        return [
            RequestedWindow(window=self.window(number).key, asked_by=by) for number, by in asked
        ]


def replanned(ledger: Ledger, window: str) -> int:
    """Make the newest plan of a window a new generation, as a submission does; its number."""

    def work(rows: Connection) -> int:
        plan = plan_rows.copy_plan(rows, ledger.pipeline, ledger.line, window)
        plan_rows.let_count(rows, ledger.pipeline, {window: plan.generation})
        return plan.generation

    return ledger.database.transact(work)


def let_count(ledger: Ledger, window: str, generation: int) -> None:
    """What the submission of a job does with the plans that it is to train."""
    ledger.database.transact(
        lambda rows: plan_rows.let_count(rows, ledger.pipeline, {window: generation})
    )


def noon(number: int) -> datetime:
    return START + number * DAY + timedelta(hours=12)


def table(times: Sequence[datetime]) -> pa.Table:
    numbers = pa.array(range(len(times)), pa.int64())
    return pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "n": numbers})


def memory_source(name: str, **more: Any) -> SourceSpec:
    fields = {
        "name": name,
        "kind": "memory",
        "options": {"table": name},
        "columns": {"at": "timestamp", "n": "int"},
        "event_time": "at",
    }
    return SourceSpec.model_validate(fields | more)


def pipeline(names: Sequence[str], **more: Any) -> PipelineSpec:
    dataset = {
        "window": "1d",
        "start": "2026-03-01",
        "event_id": "n",
        "label": {"column": "n"},
        "streams": {name: {"sources": [name]} for name in names},
        "features": {"n": {"encode": "numeric"}},
        **more.pop("dataset", {}),
    }
    return PipelineSpec.model_validate({"name": "ads", "dataset": dataset, **more})


@contextmanager
def stages(
    root: Path, names: Sequence[str] = ("a",), *, source: dict[str, Any] | None = None, **more: Any
) -> Iterator[Stages]:
    """Stages over one table for each name; what the sources are asked is written down."""
    found = Stages(
        root,
        {name: memory_source(name, **(source or {})) for name in names},
        pipeline(names, **more),
    )

    class Watched(MemorySource):
        def readiness(self, span: Interval) -> Readiness:
            last = found.late.get(self.table)
            missing = last is not None and span.end > last
            return Readiness(ready=not missing, reason="no marker" if missing else "")

        def scan(self, spans: Sequence[Interval]) -> Scan:
            found.scans.append((self.table, list(spans)))
            return super().scan(spans)

    module = __import__("forebay.datatasks.sources.memory.source", fromlist=["MemorySource"])
    module.MemorySource = Watched
    try:
        yield found
    finally:
        module.MemorySource = MemorySource
        for name in names:
            MEMORY.pop(name, None)
