"""CPU of a row in a line that is followed, beside the same rows as closed windows.

    python benchmarks/continuous_cost.py [--rows-per-second 2000] [--model towers]

The line is that of `continuous.py`, with a `log` that gets a segment a second. `run --follow`
trains rows as they come; then, in another home, a `run` of `process: standing` for each window
trains them from the same files. CPU is that of all processes of a line, and of none that publishes
or measures, without that of a short first window, and for each later command what it takes to find
nothing to train. The clock is set, so that an hour passes in ten minutes: slices, seals and polls
come as often as ever, and ends of windows six times as often, in both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psutil
import yaml
from continuous import BEGIN, RATE, rows_of, written
from process_costs import cpu_below

from forebay.datatasks.sources.log.writer import LogWriter
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.paths import Home
from forebay.system.clock import CLOCK_NAME, utc_now
from forebay.system.processes.parent import adopt_orphans

HOUR, BAR = timedelta(hours=1), 1.15
FIRST, WINDOWS = BEGIN.replace(minute=0), 1  # a minute is left of it; how many windows follow
END = FIRST + (1 + WINDOWS) * HOUR


def declared(root: Path, process: str, asked: argparse.Namespace) -> Path:
    """A project with that line, but for its stream, model and processes."""
    (project := root / process).mkdir()
    written(project, "", END, asked)
    job = {"process": process, "continuous": {"slice": f"{asked.slice * RATE:.0f}s"}}
    line = {"model": {"kind": asked.model}, "job": job}
    stream = {"kind": "log", "options": {"path": f"{root}/clicks"}}
    for name, changed in (("sources/clicks", stream), ("pipelines/ads", line)):
        file = project / "config" / f"{name}.yaml"
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changed}))
    return project


def publish(log: Path, rows_per_second: int) -> None:
    number, began = 0, time.monotonic()
    while (now := utc_now()) < END - timedelta(seconds=2 * RATE):
        LogWriter(log, number % 2).append(rows_of(number, rows_per_second, now), now)
        number += 1
        time.sleep(max(0.0, began + number - time.monotonic()))


def links_of(project: Path) -> list[Link]:
    return list(ModelChain(Home(project / "home"), "ads").links())


def forebay(project: Path, *arguments: str, noted: Callable[[], bool] = lambda: False) -> float:
    """Run a command to its end; CPU seconds up to then, or to the moment that is `noted`."""
    command = [sys.executable, "-m", "forebay", *arguments]
    environment = {**os.environ, "FOREBAY_HOME": str(project / "home")}
    with (project / "log").open("ab") as log:
        run = subprocess.Popen(command, cwd=project, env=environment, stdout=log, stderr=log)
    while run.poll() is None and not noted():
        time.sleep(0.1)
    cpu = cpu_below()
    if run.wait() != 0:
        raise SystemExit((project / "log").read_text())
    return cpu


def followed(project: Path) -> float:
    """CPU seconds from the end of the first window on."""
    first = forebay(project, "run", "ads", "--follow", noted=lambda: bool(links_of(project)))
    return cpu_below() - first


def closed(project: Path) -> float:
    """The same. The last command finds nothing to train."""
    keys = [f"{FIRST + number * HOUR:%Y-%m-%dT%H}" for number in (*range(WINDOWS + 1), WINDOWS)]
    marks = [forebay(project, "run", "ads", "--from", key, "--to", key) for key in keys]
    return marks[-2] - marks[0] - WINDOWS * (marks[-1] - marks[-2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows-per-second", type=int, default=2_000, help="of each source")
    parser.add_argument("--model", choices=("towers", "count"), default="towers")
    parser.add_argument("--slice", type=float, default=10.0, help="seconds of a wall clock")
    parser.set_defaults(every=120.0)  # which `declared` leaves out again
    asked = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        root, micros, seen = Path(folder), [], []
        projects = {name: declared(root, name, asked) for name in ("continuous", "standing")}
        os.environ[CLOCK_NAME] = f"{BEGIN.isoformat()}@{time.time()}x{RATE}"
        print(f"the clock is {RATE:g} times as fast; windows after the first, {asked.model}:")
        args = (root / "clicks", asked.rows_per_second)
        threading.Thread(target=publish, args=args, daemon=True).start()
        for name, project in projects.items():
            cpu = followed(project) if name == "continuous" else closed(project)
            counted = [sum(each.rows for each in link.seen.values()) for link in links_of(project)]
            rows = counted[-1] - counted[0]
            micros.append(cpu * 1e6 / rows)
            print(f"{name:10}  {rows:,} rows  {cpu:.1f} CPU s  {micros[-1]:.2f} µs a row")
            seen.append(links_of(project)[-1].seen)
            forebay(project, "jobs", "runners", "--end")
            psutil.wait_procs(psutil.Process().children(recursive=True))
    if seen[0] != seen[1]:
        raise SystemExit(f"other rows were trained: {seen}")
    more = (micros[0] - micros[1]) * rows / 1e3 / (WINDOWS * 3600 / RATE)
    print(f"the same rows, by their sums; {more:.0f} ms more in each second of a wall clock")
    print(f"ratio {micros[0] / micros[1]:.2f}; the bar is {BAR}")


if __name__ == "__main__":
    main()
