"""`python -m support.whole_life FOLDER [--points 3,17 | --seed S --count N | --every]`.

Each point is a life of its own, in a child of this process: killed there, looked at, gone on with
by the next child, and looked at again. A line of JSON for each point.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay.config.load import load_project
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import DEFAULT_LINE, Home
from support.projects import ads_pipeline, ads_project
from support.whole_life.faults import Faults
from support.whole_life.frames import Recorded
from support.whole_life.in_process import install
from support.whole_life.life import WINDOWS, live
from support.whole_life.verdict import faults_at_any_moment, faults_at_the_end

ROWS = 600


@dataclass(frozen=True)
class Lives:
    """One project and its recorded frames, for any number of homes."""

    root: Path

    @property
    def recorded(self) -> Recorded:
        return Recorded(self.root / "frames")

    def target(self, home: Path) -> LineTarget:
        project = load_project(self.root / "config")
        return LineTarget(project, project.pipeline("ads"), Home(home), DEFAULT_LINE)

    def prepare(self) -> None:
        """Make the project, and record its frames in a process of its own: it starts threads."""
        pipeline = ads_pipeline(checkpoint={"every_steps": 3, "windows_kept": 2})
        pipeline["train"]["minibatch_rows"] = 128
        ads_project(self.root, days=len(WINDOWS), rows=ROWS, pipeline=pipeline)
        subprocess.run(
            [sys.executable, "-m", "support.whole_life", str(self.root), "--record"], check=True
        )

    def operations(self) -> dict[str, int]:
        """How many operations a life has that nobody ends, and how many transactions that write."""
        home = self.root / "whole"
        faults = Faults()

        def whole() -> None:
            faults.install()
            live(self.target(home))
            counts = {"operations": faults.count, "transactions": faults.transactions}
            (self.root / "counts").write_text(json.dumps(counts))

        _require(self.child(whole))
        return json.loads((self.root / "counts").read_text())

    def try_point(self, point: int) -> list[str]:
        """What is wrong after a death at one point; nothing when all is as it must be."""
        home = self.root / "homes" / str(point)
        home.mkdir(parents=True)
        target = self.target(home)

        def killed() -> None:
            Faults(point).install()
            live(target)

        died = self.child(killed)
        if died == 0:
            return [f"nobody died at point {point}"]
        seen = self.child(lambda: _none(faults_at_any_moment(target, self.recorded)))
        ended = self.child(lambda: live(target))
        after = self.child(lambda: _none(faults_at_the_end(target, self.recorded)))
        names = ("killed", "look", "go on", "end")
        codes = zip(names, (0 if died == -9 else died, seen, ended, after), strict=True)
        return [f"{name}: {code}" for name, code in codes if code != 0]

    def child(self, work: Callable[[], object]) -> int:
        """The exit code of a child that did this."""
        pid = os.fork()
        if pid == 0:
            install(self.recorded)
            try:
                work()
            except BaseException:  # noqa: BLE001 - a child of a fork must not return
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)


def _none(faults: Iterable[str]) -> None:
    found = list(faults)
    if found:
        raise AssertionError("; ".join(found))


def _require(code: int) -> None:
    if code != 0:
        raise SystemExit(f"a life that nobody ends failed: {code}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--points", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    lives = Lives(given.folder)
    if given.record:
        lives.recorded.record(given.folder, WINDOWS)
        return
    lives.prepare()
    counts = lives.operations()
    operations = counts["operations"]
    points: Iterable[int] = range(1, operations + 1)
    if given.points:
        points = [int(each) for each in given.points.split(",")]
    elif given.count:
        points = sorted(random.Random(given.seed).sample(range(1, operations), given.count))
    print(json.dumps(counts), flush=True)
    for point in points:
        print(json.dumps({"point": point, "faults": lives.try_point(point)}), flush=True)


if __name__ == "__main__":
    main()
