"""`python -m support.whole_life FOLDER [--death kill|cut] [--points 3,17 | --seed S --count N]`.

`--share 1/2` tries every second of these points, from the second on.

One life in a child of this process leaves images of its home at its points, as a kill or a cut of
power there would; once it is dead each is looked at by a child, gone on with, and looked at again.
A line of JSON for each point.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from forebay.config.load import load_project
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import DEFAULT_LINE, Home
from support import independent
from support.kill_cases import expected
from support.parquet_files import null_labels
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, ads_project, history_source
from support.whole_life.attempts import NOBODY_DIED
from support.whole_life.faults import Faults
from support.whole_life.in_process import code_of, forked, parse_footers_here, run_jobs_here
from support.whole_life.life import WINDOWS, live
from support.whole_life.verdict import Counted, faults_at_any_moment, faults_at_the_end
from support.whole_life.watched_disk import WatchedDisk

ROWS = 600
DEAD_EVERY = 50
# Each window has a seal before its last one.
PIPELINE = ads_pipeline(checkpoint={"every_steps": 2, "windows_kept": 2})
PIPELINE["train"]["minibatch_rows"] = 512
# Homes that one life leaves at its points.
IMAGES = 60


@dataclass(frozen=True)
class Lives:
    root: Path

    @cached_property
    def rows(self) -> Counted:
        found: Counted = json.loads((self.root / "rows").read_text())
        return found

    def target(self, home: Path) -> LineTarget:
        project = load_project(self.root / "config")
        return LineTarget(project, project.pipeline("ads"), Home(home), DEFAULT_LINE)

    def prepare(self) -> None:
        """Make the project, and count its rows in a process of its own: DuckDB starts threads."""
        project = ads_project(self.root, days=len(WINDOWS), rows=ROWS, pipeline=PIPELINE)
        for file in project.files.rglob("part-0.parquet"):
            null_labels(file, DEAD_EVERY)
        project.write_source("history", history_source(label_null="dead_letter"))
        _require(self.child(lambda: self._count(project)))

    def _count(self, project: Project) -> None:
        found = {}
        for day, window in enumerate(WINDOWS):
            files = f"date={FIRST_DAY + (day - 1) * DAY:%Y-%m-%d}/*.parquet"
            dead = independent.parquet_sums(project.files, "clicked IS NULL", files)["rows"]
            found[window] = (expected(project, day, "clicked IS NOT NULL"), dead)
        (self.root / "rows").write_text(json.dumps(found))

    def counted(self) -> dict[str, int]:
        """How many operations a life has that nobody ends: all, transactions, writes of files.

        An earlier call in this folder has prepared it too.
        """
        path = self.root / "counts"
        if not path.exists():
            self.prepare()
            self._operations(path)
        found: dict[str, int] = json.loads(path.read_text())
        return found

    def _operations(self, path: Path) -> None:
        home = self._home("whole")
        faults, disk = Faults(), WatchedDisk(home)

        def whole() -> None:
            disk.install()
            faults.install()
            live(self.target(home))
            counts = {
                "operations": faults.count,
                "transactions": faults.transactions,
                "writes": disk.count,
            }
            path.write_text(json.dumps(counts))

        self.lived(lambda: _require(self.child(whole)))

    def try_deaths(self, points: Sequence[int], cut_seed: int | None) -> None:
        """One life that leaves an image of its home at each point, and then a start with each.

        cut_seed: of what cuts of power take; None for kills.
        """
        home, images = self._home("dying"), self.root / "images"
        target = self.target(home)

        def whole() -> None:
            disk, faults = WatchedDisk(home), Faults()
            if cut_seed is None:
                image = disk.leave_image
                faults.before = {
                    point: partial(image, images / str(point), images / f"{point}.synced")
                    for point in points
                }
            else:
                disk.cut_at(points, images, cut_seed)
            disk.install()
            faults.install()
            live(target)

        def each() -> None:
            _require(self.child(whole))  # rows name a process that is dead by now
            for point in points:
                tried = self._tried(target, images / str(point), is_kill=cut_seed is None)
                print(json.dumps({"point": point, "faults": tried}), flush=True)

        shutil.rmtree(images, ignore_errors=True)
        self.lived(each)

    def _tried(self, target: LineTarget, image: Path, *, is_kill: bool) -> list[str]:
        home, known = target.home.root, image.with_suffix(".synced") if is_kill else None
        if known is not None and not known.exists():
            return [NOBODY_DIED]
        shutil.rmtree(home, ignore_errors=True)
        if image.exists():
            image.rename(home)
        started = self.child(lambda: self._start(target, known))
        return [f"start: {started}"] if started != 0 else []

    def _start(self, target: LineTarget, known: Path | None) -> None:
        """known: what of the disk was synced; all of it without one."""
        _none(faults_at_any_moment(target, self.rows))
        if known is not None:
            WatchedDisk(target.home.root, known).install()
        live(target)
        _none(faults_at_the_end(target, self.rows))

    def _home(self, name: str) -> Path:
        home = self.root / name / "home"
        shutil.rmtree(home.parent, ignore_errors=True)
        home.parent.mkdir(parents=True)
        return home

    def lived(self, work: Callable[[], object]) -> None:
        """Do this in a process that has lived once: its children need not import anything."""

        def whole() -> None:
            live(self.target(self._home("lived")))
            work()

        _require(self.child(whole))

    def child(self, work: Callable[[], object]) -> int:
        def here() -> None:
            run_jobs_here()
            parse_footers_here()
            work()

        return code_of(forked(here))


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
    parser.add_argument("--death", choices=("kill", "cut"), default="kill")
    parser.add_argument("--points", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--share", default="0/1")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    lives = Lives(given.folder)
    counts = lives.counted()
    print(json.dumps(counts), flush=True)
    most = counts["operations" if given.death == "kill" else "writes"]
    points: Sequence[int] = range(1, most + 1)
    if given.points:
        points = [int(each) for each in given.points.split(",")]
    elif given.count:
        points = sorted(random.Random(given.seed).sample(range(1, most), given.count))
    share, shares = map(int, given.share.split("/"))
    points = points[share::shares]
    for first in range(0, len(points), IMAGES):
        cut_seed = given.seed if given.death == "cut" else None
        lives.try_deaths(points[first : first + IMAGES], cut_seed)


if __name__ == "__main__":
    main()
