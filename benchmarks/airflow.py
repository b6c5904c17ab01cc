"""What Airflow costs beside the work: wall and CPU seconds for each window, memory, parsing, start.

The same generated windows run in one call by one `forebay run` (one job for all of them) and by
backfills in the embedded Airflow: of the same DAG with empty tasks (the floor: what Airflow costs
whatever the tasks do), with processes for each window, and with processes that stay
(`job.process: standing`). CPU is what the kernel charged to every process, those that ended
included; the work is the stages that Airflow's tasks call and the jobs that they submit, everything
else is Airflow's. Run it alone: `python benchmarks/airflow.py` takes about 20 minutes, of which
`--hours 48` is most; `--hours 0 --windows 6` takes eight.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import criteo
import yaml
from process_costs import Costs

from forebay.config.specs.pipelines import ScheduleSpec
from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.components import NAMES
from forebay.embedded.airflow.rest import AirflowApi
from forebay.home.paths import Home

AS_JSON = "json"
PIPELINE = "criteo"
EMPTY = "empty"
PROCESSES = ("per_window", "standing")
SOURCES = 3
WORK = ("stages", "jobs")
# The tasks of a pipeline, each in a process of its own, as ours are but for the joiner.
EMPTY_DAG = """
from datetime import datetime
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from forebay.operators.timetable import WindowTimetable

def nothing():
    pass

first, last = (datetime.fromisoformat(text) for text in {span!r})
with DAG(
    {name!r}, schedule=WindowTimetable({size!r}, "UTC", first, last), catchup=False,
    max_active_runs={active},
):
    def task(name):
        return PythonOperator(task_id=name, python_callable=nothing)
    chain = task("timer")
    for names in (
        [f"source{{n}}" for n in range({sources})], ["joiner"], ["sink"], ["data_executors"],
        ["training_executors"], ["evaluate"], ["publish"],
    ):
        following = [task(name) for name in names]
        following = following[0] if len(following) == 1 else following
        chain >> following
        chain = following
"""
IDLE_SECONDS = 30.0
BACKFILL_SECONDS = 1_800.0
PARSE_SECONDS = 300.0
MANY = 60
# As the dag-processor does: a fork for each file, of a process that has imported Airflow.
PARSE = """
import json, multiprocessing, sys, time
from airflow.dag_processing.dagbag import DagBag

def parse(path):
    wall, cpu = time.perf_counter(), time.process_time()
    bag = DagBag(path)
    assert len(bag.dags) == 1, bag.import_errors
    return time.perf_counter() - wall, time.process_time() - cpu

with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
    print(json.dumps(pool.map(parse, sys.argv[1:], chunksize=1)))
"""


@dataclass
class Spent:
    """One variant: wall and CPU seconds by part, most memory by part at one moment."""

    wall: float
    cpu: dict[str, float]
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """CPU seconds of all parts."""
        return sum(self.cpu.values())

    def of(self, *parts: str) -> float:
        """CPU seconds of these parts."""
        return sum(self.cpu.get(part, 0.0) for part in parts)


def measured(costs: Costs, work: Callable[[], object]) -> Spent:
    """Wall and CPU seconds of one piece of work."""
    before, started = costs.cpu_seconds(), time.perf_counter()
    work()
    wall = time.perf_counter() - started
    after = costs.cpu_seconds()
    cpu = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
    return Spent(wall, cpu, costs.memory_bytes())


def part_in(home: Home) -> Callable[[str, dict[str, str]], str]:
    """Names the part of a process of this home; strangers have none."""
    place = str(home.root)

    def part_of(command: str, environment: dict[str, str]) -> str:
        if environment.get("FOREBAY_HOME") != place:
            return ""
        if "FOREBAY_JOB_ID" in environment:
            return "jobs"
        if "forebay.cli stage" in command or "forebay.stages" in command:
            return "stages"
        if "forebay.embedded.keeper" in command:
            return "keeper"
        return environment.get("FOREBAY_AIRFLOW_COMPONENT", "forebay run")

    return part_of


@dataclass(frozen=True)
class Windows:
    """Windows to run. size: as in `dataset.window`."""

    size: str
    count: int

    @property
    def step(self) -> timedelta:
        return timedelta(**{f"{self.size}s": 1})

    @property
    def last(self) -> datetime:
        return criteo.DAY + (self.count - 1) * self.step

    @property
    def end(self) -> str:
        return f"{self.last + self.step:%Y-%m-%dT%H:%M:%S}"

    def name(self, process: str) -> str:
        return f"{PIPELINE}_{self.size}_{process}"


def write_project(root: Path, rows: int, several: list[Windows], processes: Sequence[str]) -> Path:
    """Data, sources, and pipelines that end with their data: nothing runs by itself."""
    days = max((each.last - criteo.DAY).days + 1 for each in several)
    criteo.write(root, rows, days)
    pipelines, sources = root / "config" / "pipelines", root / "config" / "sources"
    names = [f"impressions{number}" for number in range(SOURCES)]
    for name in names:
        (sources / f"{name}.yaml").write_text((sources / "impressions.yaml").read_text())
    (sources / "impressions.yaml").unlink()
    declared = yaml.safe_load((pipelines / f"{PIPELINE}.yaml").read_text())
    (pipelines / f"{PIPELINE}.yaml").unlink()
    declared["dataset"]["streams"] = {"all": {"sources": names}}
    for each in several:
        declared["dataset"] |= {"window": f"1{each.size[0]}", "end": each.end}
        for process in {"per_window", *processes}:  # `forebay run` takes the first
            declared["job"] = {"process": process}
            path = pipelines / f"{each.name(process)}.yaml"
            path.write_text(yaml.safe_dump(declared, sort_keys=False))
    return root / "config"


def forebay(config: Path, home: Home, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-P", "-m", "forebay.cli", *arguments, "--config", str(config)],
        env={**os.environ, "FOREBAY_HOME": str(home.root)},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def peer(config: Path, home: Home, windows: Windows) -> Spent:
    """One `forebay run`."""
    home.root.mkdir()
    costs = Costs(part_in(home))
    form = "%Y-%m-%d" if windows.size == "day" else "%Y-%m-%dT%H"
    span = ("--from", f"{criteo.DAY:{form}}", "--to", f"{windows.last:{form}}")
    try:
        name = windows.name("per_window")
        return measured(costs, lambda: forebay(config, home, "run", name, *span))
    finally:
        costs.close()


def until(holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(otherwise)
        time.sleep(1)


def backfill(api: AirflowApi, name: str, windows: Windows) -> None:
    """All windows by the REST API with its defaults, until the last run is over."""
    api.pause(name, paused=False)
    api.create_backfill(name, criteo.DAY, windows.last)

    def over() -> bool:
        states = [run["state"] for run in api.dag_runs(name)]
        if "failed" in states:
            raise SystemExit(f"a run failed: {states}")
        return states.count("success") == windows.count

    until(over, BACKFILL_SECONDS, "the backfill did not end")


def add_pipelines(config: Path, count: int) -> None:
    """The same pipeline under other names, dropped into the folder that Airflow watches."""
    text = next((config / "pipelines").glob("*.yaml")).read_text()
    for number in range(count):
        temporary = config / "pipelines" / f"p{number:02d}.new"
        temporary.write_text(text)
        temporary.rename(temporary.with_suffix(".yaml"))


def parse_in_a_process(files: list[Path], embedded: Embedded) -> list[list[float]]:
    """Wall and CPU seconds of each file, without Airflow's own import."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PARSE, *map(str, files)],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(embedded.layout.root),
            "AIRFLOW_CONFIG": str(embedded.layout.settings),
            "FOREBAY_HOME": str(embedded.home.root),
        },
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


@dataclass
class Airflow:
    """One embedded Airflow that is measured from its start to its end."""

    config: Path
    home: Home
    processes: Sequence[str]
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.root.mkdir()
        self.embedded = Embedded(self.home, [self.config])
        self.costs = Costs(part_in(self.home))

    def run(self, several: list[Windows], many: int) -> dict[str, Any]:
        """Every phase, in order."""
        count = len(several) * (1 + len({"per_window", *self.processes}))
        try:
            self.embedded.layout.create()
            for windows in several:
                self._add_empty(windows)
            self.facts["first start"] = measured(self.costs, self.embedded.start)
            api = AirflowApi(self.embedded.endpoint())
            self._await_dags(api, count)
            self.facts["idle"] = measured(self.costs, lambda: time.sleep(IDLE_SECONDS))
            for windows in several:
                for process in (EMPTY, *self.processes):
                    work = partial(backfill, api, windows.name(process), windows)
                    self.facts[windows.name(process)] = measured(self.costs, work)
            self.facts["parse"] = {1: self._parse_facts(api)}
            more = partial(self._add, api, many, count + many)
            self.facts["more pipelines"] = measured(self.costs, more)
            self.facts["parse"][many] = self._parse_facts(api)
            self.embedded.stop()
            self.facts["second start"] = measured(self.costs, self.embedded.start)
        finally:
            self.embedded.stop()
            self.embedded.remove_database()
            self.costs.close()
        return self.facts

    def _await_dags(self, api: AirflowApi, count: int) -> None:
        until(lambda: len(api.dags()) == count, PARSE_SECONDS, f"{count} DAGs did not appear")

    def _add(self, api: AirflowApi, count: int, in_all: int) -> None:
        add_pipelines(self.config, count)
        self._await_dags(api, in_all)

    def _add_empty(self, windows: Windows) -> None:
        name, active = windows.name(EMPTY), ScheduleSpec().active_runs_max
        span = (criteo.DAY.isoformat(), windows.last.isoformat())
        size = f"1{windows.size[0]}"
        text = EMPTY_DAG.format(name=name, span=span, size=size, active=active, sources=SOURCES)
        (self.embedded.layout.dags / f"{name}.py").write_text(text)

    def _parse_facts(self, api: AirflowApi) -> dict[str, float]:
        """Seconds per pipeline: in a process of ours, and as the dag-processor tells."""
        stubs = sorted(self.embedded.layout.stubs(self.config).glob("*.py"))
        times = parse_in_a_process(stubs, self.embedded)
        told = [dag["last_parse_duration"] or 0.0 for dag in api.dags()]
        return {
            "pipelines": len(stubs),
            "wall": sum(wall for wall, _ in times) / len(times),
            "cpu": sum(cpu for _, cpu in times) / len(times),
            "dag-processor": sum(told) / len(told),
        }


def table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
    print()


def show_parts(process: str, spent: Spent, windows: int) -> None:
    """What each part of a backfill cost."""
    parts = [*NAMES, "keeper", *WORK]
    spent.cpu = {part: seconds for part, seconds in spent.cpu.items() if seconds or part in parts}
    rows = [[f"{process} by part", "CPU s", "CPU s/window", "MB (PSS)"]]
    for part in [*parts, *sorted(spent.cpu.keys() - set(parts))]:
        cpu, memory = spent.of(part), spent.memory.get(part, 0)
        rows.append([part, f"{cpu:.1f}", f"{cpu / windows:.2f}", f"{memory / 2**20:,.0f}"])
    memory = sum(spent.memory.values())
    rows.append(
        ["total", f"{spent.total:.1f}", f"{spent.total / windows:.2f}", f"{memory / 2**20:,.0f}"]
    )
    table(rows)


def show_ways(ways: dict[str, Spent], windows: Windows) -> None:
    """The same windows in several ways; what each costs above the floor."""
    floor = ways[EMPTY]
    rows = [["way", "wall s", "s/window", "above", "CPU s", "CPU s/window", "above", "MB (PSS)"]]
    for name, spent in ways.items():
        memory = sum(spent.memory.values()) / 2**20
        cpu, wall = spent.total / windows.count, spent.wall / windows.count
        rows.append(
            [
                name,
                f"{spent.wall:.1f}",
                f"{wall:.2f}",
                f"{wall - floor.wall / windows.count:+.2f}",
                f"{spent.total:.1f}",
                f"{cpu:.2f}",
                f"{cpu - floor.total / windows.count:+.2f}",
                f"{memory:,.0f}",
            ]
        )
    table(rows)


def show_airflow(facts: dict[str, Any]) -> None:
    """Starts, idling and parsing."""
    rows = [["phase", "wall s", "CPU s"]]
    rows += [
        [name, f"{facts[name].wall:.1f}", f"{facts[name].total:.1f}"]
        for name in ("first start", "second start", "idle", "more pipelines")
    ]
    table(rows)
    rows = [["parse, seconds per pipeline", "wall", "CPU", "dag-processor"]]
    for found in facts["parse"].values():
        figures = [f"{found[name]:.3f}" for name in ("wall", "cpu", "dag-processor")]
        rows.append([f"{found['pipelines']} pipelines", *figures])
    table(rows)


def plain(value: object) -> object:
    if isinstance(value, Spent):
        return {"wall": value.wall, "cpu": value.cpu, "memory": value.memory}
    raise TypeError(type(value).__name__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=14, help="of days; 0 for none")
    parser.add_argument("--hours", type=int, default=48, help="windows of hours; 0 for none")
    parser.add_argument(
        "--process", choices=PROCESSES, action="append", help="only this one (default: both)"
    )
    parser.add_argument("--rows", type=int, default=20_000, help="rows in one day of a source")
    parser.add_argument("--many", type=int, default=MANY, help="pipelines to parse")
    parser.add_argument("--output", choices=("text", AS_JSON), default="text")
    options = parser.parse_args()
    load = os.getloadavg()
    processes = options.process or PROCESSES
    counts = {"day": options.windows, "hour": options.hours}
    several = [Windows(size, count) for size, count in counts.items() if count]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        config = write_project(root, options.rows, several, processes)
        peers = {each.size: peer(config, Home(root / each.size), each) for each in several}
        airflow = Airflow(config, Home(root / "airflow"), processes)
        facts = airflow.run(several, options.many)
    if options.output == AS_JSON:
        document = {"load": [load, os.getloadavg()], "forebay run": peers, **facts}
        print(json.dumps(document, indent=1, default=plain))
        return
    print(f"load at start {load[0]:.1f}, at end {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores")
    for each in several:
        print(f"{each.count} windows of a {each.size}, {SOURCES} sources, {options.rows:,} rows of")
        print("each in a day, counting model; above: what the same DAG with empty tasks costs\n")
        ways = {name: facts[each.name(name)] for name in (EMPTY, *processes)}
        show_ways({**ways, "forebay run": peers[each.size]}, each)
        for process in processes:
            show_parts(process, facts[each.name(process)], each.count)
    show_airflow(facts)


if __name__ == "__main__":
    main()
