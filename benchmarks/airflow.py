"""What Airflow costs beside the work: wall and CPU seconds for each window, memory, parsing, start.

The same generated windows run three times in one call: by one `forebay run` (one job for all of
them), by a `forebay run` for each window (one job each, as in Airflow), and by a backfill in the
embedded Airflow. CPU is what the kernel charged to every process, those that ended included; the
work is the stages that Airflow's tasks call and the jobs that they submit, everything else is
Airflow's. Run it alone: `python benchmarks/airflow.py`; it takes about eight minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import criteo
import yaml
from process_costs import Costs

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.components import NAMES
from forebay.embedded.airflow.rest import AirflowApi
from forebay.home.paths import Home

AS_JSON = "json"
PIPELINE = "criteo"
WORK = ("stages", "jobs")
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


def write_project(root: Path, rows: int, windows: int) -> Path:
    """Data, sources, and one pipeline that ends with its data: nothing runs by itself."""
    criteo.write(root, rows, windows)
    path = root / "config" / "pipelines" / f"{PIPELINE}.yaml"
    declared = yaml.safe_load(path.read_text())
    declared["dataset"]["end"] = f"{criteo.DAY + timedelta(days=windows):%Y-%m-%d}"
    path.write_text(yaml.safe_dump(declared, sort_keys=False))
    return root / "config"


def forebay(config: Path, home: Home, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-P", "-m", "forebay.cli", *arguments, "--config", str(config)],
        env={**os.environ, "FOREBAY_HOME": str(home.root)},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def peer(config: Path, home: Home, ranges: list[tuple[str, str]]) -> Spent:
    """`forebay run` over these ranges, one after the other."""
    home.root.mkdir()
    costs = Costs(part_in(home))

    def work() -> None:
        for first, last in ranges:
            forebay(config, home, "run", PIPELINE, "--from", first, "--to", last)

    try:
        return measured(costs, work)
    finally:
        costs.close()


def until(holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(otherwise)
        time.sleep(1)


def backfill(api: AirflowApi, windows: int) -> None:
    """All windows by the REST API with its defaults, until the last run is over."""
    api.pause(PIPELINE, paused=False)
    last = criteo.DAY + timedelta(days=windows - 1)
    api.create_backfill(PIPELINE, criteo.DAY, last)

    def over() -> bool:
        states = [run["state"] for run in api.dag_runs(PIPELINE)]
        if "failed" in states:
            raise SystemExit(f"a run failed: {states}")
        return states.count("success") == windows

    until(over, BACKFILL_SECONDS, "the backfill did not end")


def add_pipelines(config: Path, count: int) -> None:
    """The same pipeline under other names, dropped into the folder that Airflow watches."""
    text = (config / "pipelines" / f"{PIPELINE}.yaml").read_text()
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
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.root.mkdir()
        self.embedded = Embedded(self.home, [self.config])
        self.costs = Costs(part_in(self.home))

    def run(self, windows: int, many: int) -> dict[str, Any]:
        """Every phase, in order."""
        try:
            self.facts["first start"] = measured(self.costs, self.embedded.start)
            api = AirflowApi(self.embedded.endpoint())
            self._await_dags(api, 1)
            self.facts["idle"] = measured(self.costs, lambda: time.sleep(IDLE_SECONDS))
            self.facts["backfill"] = measured(self.costs, lambda: backfill(api, windows))
            self.facts["parse"] = {1: self._parse_facts(api)}
            self.facts["more pipelines"] = measured(self.costs, lambda: self._add(api, many))
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

    def _add(self, api: AirflowApi, count: int) -> None:
        add_pipelines(self.config, count)
        self._await_dags(api, count + 1)

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


def show_parts(spent: Spent, windows: int) -> None:
    """What each part of the backfill cost."""
    parts = [*NAMES, "keeper", *WORK]
    spent.cpu = {part: seconds for part, seconds in spent.cpu.items() if seconds or part in parts}
    rows = [["backfill by part", "CPU s", "CPU s/window", "MB (PSS)"]]
    for part in [*parts, *sorted(spent.cpu.keys() - set(parts))]:
        cpu, memory = spent.of(part), spent.memory.get(part, 0)
        rows.append([part, f"{cpu:.1f}", f"{cpu / windows:.2f}", f"{memory / 2**20:,.0f}"])
    memory = sum(spent.memory.values())
    rows.append(
        ["total", f"{spent.total:.1f}", f"{spent.total / windows:.2f}", f"{memory / 2**20:,.0f}"]
    )
    table(rows)


def show_ways(ways: dict[str, Spent], windows: int) -> None:
    """The same windows in three ways."""
    base = ways["forebay run"]
    rows = [["way", "wall s", "s/window", "CPU s", "CPU s/window", "ratio CPU", "MB (PSS)"]]
    for name, spent in ways.items():
        memory = sum(spent.memory.values()) / 2**20
        rows.append(
            [
                name,
                f"{spent.wall:.1f}",
                f"{spent.wall / windows:.2f}",
                f"{spent.total:.1f}",
                f"{spent.total / windows:.2f}",
                f"{spent.total / base.total:.2f}",
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


def beyond_the_work(
    ways: dict[str, Spent], facts: dict[str, Any], windows: int
) -> dict[str, float]:
    """For each window: what a backfill costs and the work alone does not."""
    spent, idle = ways["backfill in Airflow"], facts["idle"]
    airflow = spent.total - spent.of(*WORK)
    idling = idle.total / idle.wall * spent.wall
    return {
        "cpu_seconds": airflow / windows,
        "cpu_seconds_without_idling": (airflow - idling) / windows,
        "wall_seconds": (spent.wall - ways["forebay run"].wall) / windows,
        "wall_seconds_beyond_a_job_each": (spent.wall - ways["forebay run for each"].wall)
        / windows,
    }


def plain(value: object) -> object:
    if isinstance(value, Spent):
        return {"wall": value.wall, "cpu": value.cpu, "memory": value.memory}
    raise TypeError(type(value).__name__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=14)
    parser.add_argument("--rows", type=int, default=20_000, help="rows in one window")
    parser.add_argument("--many", type=int, default=MANY, help="pipelines to parse")
    parser.add_argument("--output", choices=("text", AS_JSON), default="text")
    options = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        config = write_project(root, options.rows, options.windows)
        keys = [f"{criteo.DAY + timedelta(days=day):%Y-%m-%d}" for day in range(options.windows)]
        ways = {
            "forebay run": peer(config, Home(root / "one"), [(keys[0], keys[-1])]),
            "forebay run for each": peer(config, Home(root / "each"), [(key, key) for key in keys]),
        }
        facts = Airflow(config, Home(root / "airflow")).run(options.windows, options.many)
    ways["backfill in Airflow"] = facts["backfill"]
    beyond = beyond_the_work(ways, facts, options.windows)
    if options.output == AS_JSON:
        document = {"load": [load, os.getloadavg()], "ways": ways, "beyond": beyond, **facts}
        print(json.dumps(document, indent=1, default=plain))
        return
    print(f"load at start {load[0]:.1f}, at end {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores")
    print(f"{options.windows} windows of {options.rows:,} rows, counting model\n")
    show_ways(ways, options.windows)
    show_parts(facts["backfill"], options.windows)
    show_airflow(facts)
    for name, seconds in beyond.items():
        print(f"beyond the work, per window  {name.replace('_', ' ')}  {seconds:.2f}")


if __name__ == "__main__":
    main()
