"""Rows per second and CPU microseconds per row, from bare decode to a trained model.

Variants on the same generated rows, interleaved in every round:

- `decode`: the library alone reads the same columns of the window's files, one thread: pyarrow, or
  protobuf for `--kind tfrecord` (see `bare_decode.py`).
- `flight`: driver + data executor -> this process, which counts rows (a trivial step).
- `training`: the same path, and every minibatch trains the towers (TensorFlow); not with
  `--no-training`.

`--shape` says which rows: `criteo.py` has the shapes.

CPU is what the kernel charged to each process id between the first and the last row; imports,
process starts and graph tracing are outside: the first round is not counted. Roles have the
environment that a supervisor gives them. Run it alone: `python benchmarks/pipeline.py`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import criteo
from bare_decode import DECODERS

from forebay.config.explain import declared_columns
from forebay.config.load import load_project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.executors.link.local import LocalLink
from forebay.executors.roles.table import DATA, DRIVER
from forebay.executors.supervisor.commands import role_environment
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.home.paths import Home
from forebay.mixture.counting import CountingLearner
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.make_learner import make_learner


@dataclass
class Measure:
    """Rounds of one variant: rows/s by the clock, CPU microseconds per row by process."""

    rows_per_second: list[float] = field(default_factory=list)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def add(self, rows: int, seconds: float, cpu_seconds: dict[str, float]) -> None:
        """Keep one round."""
        self.rows_per_second.append(rows / seconds)
        for name, value in cpu_seconds.items():
            self.cpu.setdefault(name, []).append(value * 1e6 / rows)


def cpu_seconds(pid: int) -> float:
    """Of all threads, to the nanosecond: the kernel's clock of a process (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


class Roles:
    """A driver and a data executor on a job of their own, and a reader in this process."""

    def __init__(self, root: Path, home: Home, windows: int) -> None:
        project = load_project(root / "config")
        self.pipeline: PipelineSpec = project.pipeline("criteo")
        keys = self.pipeline.dataset.grid.between("2026-03-01", f"2026-03-{windows:02d}")
        self.report = plan_windows(
            project.root, self.pipeline, project.sources, Ledger(home, "criteo"), keys,
            warm_start=None, clock=lambda: datetime.now(UTC),
        )  # fmt: skip
        requests = [
            WindowRequest(key=p.window, generation=p.generation, start=p.start, end=p.end)
            for p in self.report.plans
        ]
        request = JobRequest.of(
            "benchmark", home.root, project.root, self.pipeline, project.sources, requests
        )
        folder = JobFolder(home.job(request.job_id))
        folder.create()
        folder.prepare(request, continues=False)
        self.columns = declared_columns(self.pipeline, project.sources)
        self.layout = FeatureLayout.of(self.pipeline.dataset, self.columns)
        first_start = ("--job", str(folder.path), "--index", "0", "--attempt", "1")
        self.processes = {
            name: subprocess.Popen(
                [sys.executable, "-m", role.module, *first_start],
                env=role_environment(os.environ, request, role, root),
                stderr=folder.process(name, 0).log.open("ab"),
            )
            for name, role in (("driver", DRIVER), ("executor", DATA))
        }
        self.reader = RemoteReader(LocalLink(folder.path), self.layout, self.pipeline.use_names, 1)

    def consume(self, window: int, learner: Learner) -> tuple[int, float, dict[str, float]]:
        """Take one window; rows, seconds and CPU seconds by process from its first frame on."""
        plan = self.report.plans[window]
        pids = {"trainer": os.getpid()} | {n: p.pid for n, p in self.processes.items()}
        rows = 0
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        started = time.perf_counter()
        self.reader.begin(plan.window, plan.generation, {}, 0)
        while not self.reader.finished():
            frame = self.reader.next(1.0)
            if frame is None:
                continue
            if frame.minibatch is not None and len(frame.minibatch):
                learner.learn(frame.minibatch)
                rows += len(frame.minibatch)
            self.reader.used(frame)
        seconds = time.perf_counter() - started
        self.reader.sealed(0, self.reader.progress())
        return rows, seconds, {n: cpu_seconds(pid) - before[n] for n, pid in pids.items()}

    def close(self) -> None:
        """End both processes."""
        self.reader.close()
        for process in self.processes.values():
            process.terminate()
            process.wait(10)


def timed(work: Callable[[], int]) -> tuple[int, float, dict[str, float]]:
    before, started = cpu_seconds(os.getpid()), time.perf_counter()
    rows = work()
    seconds = time.perf_counter() - started
    return rows, seconds, {"reader": cpu_seconds(os.getpid()) - before}


def show(name: str, measure: Measure) -> None:
    def spread(values: list[float], form: str) -> str:
        low, middle, high = min(values), statistics.median(values), max(values)
        return " / ".join(format(value, form) for value in (low, middle, high))

    print(f"{name:<10} rows/s  {spread(measure.rows_per_second, ',.0f')}  (min / median / max)")
    for process, values in measure.cpu.items():
        print(f"{'':<10} CPU us/row  {process:<9} {spread(values, '.3f')}")


def towers(roles: Roles) -> Learner:
    """What learns from the rows, in the place of what counts them."""
    kind = roles.pipeline.model.model_copy(update={"kind": "towers"})
    pipeline = roles.pipeline.model_copy(update={"model": kind})
    return make_learner(pipeline, roles.columns, 1, threads=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="rows in one window")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shape", choices=criteo.SHAPES, default="criteo")
    parser.add_argument("--kind", choices=DECODERS, default="parquet")
    parser.add_argument("--no-training", action="store_true")
    options = parser.parse_args()
    print(f"load at start: {os.getloadavg()}; {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shape = criteo.SHAPES[options.shape]
        windows = 2 * (options.rounds + 1)
        criteo.write(root, options.rows, windows, shape=shape, kind=options.kind)
        decode = DECODERS[options.kind]
        roles = Roles(root, Home(root / "home"), windows)
        learner = None if options.no_training else towers(roles)
        counter = CountingLearner(1)
        measures: dict[str, Measure] = {}
        try:
            for number in range(options.rounds + 1):
                files = sorted((root / "data").glob(f"date=2026-03-{2 * number + 1:02d}/*"))
                results = {"decode": timed(lambda files=files: decode(files, shape.minibatch_rows))}
                results["flight"] = roles.consume(2 * number, counter)
                if learner is not None:
                    results["training"] = roles.consume(2 * number + 1, learner)
                if number:  # the first round warms caches and traces graphs
                    for name, result in results.items():
                        measures.setdefault(name, Measure()).add(*result)
        finally:
            roles.close()
    print(f"load at end: {os.getloadavg()}; {options.rounds} rounds of {options.rows:,} rows")
    for name, measure in measures.items():
        show(name, measure)
    compare(measures["flight"], measures["decode"])


def compare(measure: Measure, decoded: Measure) -> None:
    """Say what the data path takes, as a share of what bare decode does in the same rounds."""
    rates = zip(measure.rows_per_second, decoded.rows_per_second, strict=True)
    shares = [one / bare for one, bare in rates]
    print(
        f"flight / decode  {statistics.median(shares):.2f} of the bare rate, "
        f"{max(shares):.2f} in the best round"
    )
    for process in ("executor", "trainer"):
        pairs = zip(measure.cpu[process], decoded.cpu["reader"], strict=True)
        ratio = statistics.median(one / bare for one, bare in pairs)
        print(f"flight: {process} / decode  {ratio:.2f} of the bare CPU")


if __name__ == "__main__":
    main()
