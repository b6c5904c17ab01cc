"""A job's data path without a supervisor: driver and data executors as processes, and a trainer
in the test's own process that counts rows with numpy."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.executors.link.local import LocalLink
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.executors.wire.messages import Letter, StatusCall, StatusReply
from forebay.executors.wire.rpc import DriverClient
from forebay.home.paths import Home
from forebay.mixture.counting import CountingLearner
from forebay.mixture.features.layout import FeatureLayout
from support.projects import ads_pipeline, clicks_source, history_source

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class DataPath:
    root: Path
    pipeline: PipelineSpec
    sources: dict[str, SourceSpec]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    windows: list[WindowRequest] = field(default_factory=list)
    attempts: Counts[str] = field(default_factory=Counts)

    @classmethod
    def of(
        cls,
        root: Path,
        pipeline: dict[str, Any] | None = None,
        sources: dict[str, dict[str, Any]] | None = None,
    ) -> DataPath:
        written = sources or {"history": history_source(), "clicks": clicks_source()}
        return cls(
            root,
            PipelineSpec.model_validate({"name": "ads", **(pipeline or ads_pipeline())}),
            {
                name: SourceSpec.model_validate({"name": name, **spec})
                for name, spec in written.items()
            },
        )

    @property
    def home(self) -> Home:
        return Home(self.root / ".forebay")

    @property
    def job_dir(self) -> Path:
        return self.home.job("job")

    def plan(self, first: str, last: str) -> None:
        ledger = Ledger(self.home, "ads")
        windows = self.pipeline.dataset.grid.between(first, last)
        report = plan_windows(
            self.root,
            self.pipeline,
            self.sources,
            ledger,
            windows,
            warm_start=None,
            clock=lambda: NOW,
        )
        self.windows = [
            WindowRequest(key=p.window, generation=p.generation, start=p.start, end=p.end)
            for p in report.plans
        ]
        request = JobRequest.of(
            "job", self.home.root, self.root, self.pipeline, self.sources, self.windows
        )
        for window in self.windows:
            made = self.home.model("ads", request.line, window.key, window.generation)
            made.mkdir(parents=True, exist_ok=True)
        folder = JobFolder(self.job_dir)
        folder.create()
        folder.prepare(request, continues=False)

    @property
    def link(self) -> LocalLink:
        """Of a data executor in the test's process."""
        return LocalLink(self.job_dir, "data")

    def start(self, role: str, index: int = 0) -> subprocess.Popen[bytes]:
        module = {"driver": "driver", "data": "data_executor"}[role]
        command = [sys.executable, "-m", f"forebay.executors.{module}", "--job", str(self.job_dir)]
        command += ["--index", str(index), "--attempt", str(self.attempt(f"{role}-{index}"))]
        log = (self.job_dir / "logs" / f"{role}-{index}.log").open("ab")
        with log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.processes[f"{role}-{index}"] = process
        return process

    def attempt(self, name: str) -> int:
        """The number of a process that starts now, as a supervisor would count."""
        self.attempts[name] += 1
        return self.attempts[name]

    def kill(self, name: str) -> None:
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait(5)
        role, _, index = name.partition("-")
        self.start(role, int(index))

    def status(self) -> StatusReply:
        """What the driver says; one that is still starting is waited for."""
        client = DriverClient(LocalLink(self.job_dir), 60.0)
        try:
            return client.call("status", StatusCall(), StatusReply)
        finally:
            client.close()

    def reader(self) -> RemoteReader:
        columns = declared_columns(self.pipeline, self.sources)
        layout = FeatureLayout.of(self.pipeline.dataset, columns)
        names, attempt = self.pipeline.source_names, self.attempt("trainer-0")
        return RemoteReader(LocalLink(self.job_dir), layout, names, attempt)

    def log(self, name: str) -> str:
        return (self.job_dir / "logs" / f"{name}.log").read_text()

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(5)


@contextmanager
def serving(path: DataPath, executors: int = 2) -> Iterator[DataPath]:
    try:
        path.start("driver")
        for index in range(executors):
            path.start("data", index)
        path.status()  # a reader's patience is the heartbeat's, too short for a start under load
        yield path
    finally:
        path.stop()


class Counter:
    def __init__(self, path: DataPath) -> None:
        self.learner = CountingLearner(len(path.pipeline.source_names))
        self.steps = 0
        self.frames: list[tuple[str, int, int]] = []  # feed, hour, rows
        self.letters: list[Letter] = []

    def consume(
        self,
        reader: RemoteReader,
        *,
        after_step: Callable[[int], None] | None = None,
        seconds: float = 60,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not reader.finished():
            assert time.monotonic() < deadline, "the window does not end"
            frame = reader.next(0.1)
            if frame is not None:
                self.use(reader, frame)
                if after_step is not None and frame.minibatch is not None:
                    after_step(self.steps)

    def use(self, reader: RemoteReader, frame: Frame) -> None:
        if frame.minibatch is not None:
            self.learner.learn(frame.minibatch)
            self.steps += 1
            self.frames.append((frame.feed, frame.hour, frame.rows))
        self.letters += frame.letters
        reader.used(frame)

    def sums(self) -> list[dict[str, int]]:
        return [each.model_dump() for each in self.learner.seen()]
