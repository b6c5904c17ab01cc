"""A year of hourly windows in one home: what a look costs then, against a home of ten windows.

Every window is planned, trained, judged and let serve by the functions that production calls, one
window after the other; only the training itself is left out: its checkpoint, its model and its 200
scored rows are made up. Then both homes, one of `--windows` and one of ten, are looked at: how many
statements, opened files and listed folders `evaluate`, `publish`, `why` and `run` of their last
window take, with the CPU seconds beside them (median of three), and how long `explain` of a month
and `report` of everything take.

    python benchmarks/year.py --windows 9000
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from hourly import HOUR, write_project
from sqlalchemy import Engine, event

from forebay.config.load import load_project
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.planner import plan_windows
from forebay.executors.backfill_cost import backfill_cost
from forebay.executors.evaluation.range_summary import summarise_windows
from forebay.executors.model_line.link import Link, ReadRows
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.run import Run
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.target import LineTarget, StageTarget
from forebay.executors.stages.why import why_window
from forebay.executors.trainer.stored_files import SCORES_FOLDER, WindowArchive
from forebay.executors.window_files.checkpoints import Seal
from forebay.executors.window_files.scores import ScoreWriter
from forebay.executors.window_files.steps import STEPS_NAME, StepPoint
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.store.open import store_of
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums

START = datetime(2025, 1, 1, tzinfo=UTC)
ROWS = 200
FEW = 10
MONTH = 720
WINDOWS_KEPT = 2
PARADIGM = "batch"


@dataclass
class Cost:
    """What one call took."""

    cpu_seconds: list[float] = field(default_factory=list)
    statements: int = 0
    opened: int = 0
    listed: int = 0

    def told(self) -> str:
        """One cell of the table."""
        cpu = statistics.median(self.cpu_seconds)
        return (
            f"{self.statements} statements, {self.opened} opened, {self.listed} listed, "
            f"{cpu:.3f} CPU s"
        )


class Counted:
    """Counts statements, opened files and listed folders of this process."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        sys.addaudithook(self._audited)
        event.listen(Engine, "before_cursor_execute", self._executed)

    @contextmanager
    def into(self, cost: Cost) -> Iterator[None]:
        """Count what happens inside."""
        before, cpu = Counter(self._counts), time.process_time()
        yield
        cost.cpu_seconds.append(time.process_time() - cpu)
        counts = self._counts - before
        cost.statements = counts["statement"]
        cost.opened = counts["open"]
        cost.listed = counts["os.listdir"] + counts["os.scandir"] + counts["glob.glob"]

    def _executed(self, *_: Any) -> None:
        self._counts["statement"] += 1

    def _audited(self, name: str, _arguments: tuple[Any, ...]) -> None:
        self._counts[name] += 1


def build(root: Path, count: int) -> LineTarget:
    """A home whose windows are planned, trained, judged and published; one more can be run."""
    write_project(
        root,
        START,
        count + 1,
        ROWS,
        train={"paradigm": PARADIGM},
        job={
            "roles": {"data": {"count": 1}},
            "checkpoint": {"windows_kept": WINDOWS_KEPT},
            "publish": {"windows_kept": WINDOWS_KEPT},
        },
    )
    loaded = load_project(root / "config")
    target = LineTarget(loaded, loaded.pipeline("ads"), Home(root / "home"), DEFAULT_LINE)
    grid = target.pipeline.dataset.grid
    windows = [grid.at(START + number * HOUR) for number in range(count)]
    plan_windows(
        loaded.root,
        target.pipeline,
        loaded.sources,
        target.ledger,
        windows,
        warm_start=None,
        clock=lambda: datetime.now(UTC),
    )
    for window in windows:
        train(target.at(window), root / "scratch")
    return target


def train(target: StageTarget, scratch: Path) -> None:
    """What the training of a window stores, by the functions that store it; nothing is learnt."""
    window, chain, spec = target.window, target.chain, target.pipeline
    archive = WindowArchive(store_of(target.home), spec.name, target.line)
    local = made_up(scratch / window.key)
    files = archive.put_window(window.key, 1, local, sealed(window), local / "checkpoint")
    files["saved_model"] = archive.put(window.key, 1, "saved_model", local / "saved_model")
    before, now = chain.before(window), datetime.now(UTC)
    base = before.seen if before else {"clicks": RowSums()}
    chain.record(
        Link(
            window=window.key,
            start=window.start,
            end=window.end,
            generation=1,
            parent=before.name if before else None,
            step=(before.step if before else 0) + 1,
            steps=1,
            base_seen=base,
            seen={"clicks": RowSums(rows=base["clicks"].rows + ROWS)},
            read={"clicks": ReadRows(rows=ROWS)},
            files=files,
            resumed_from_step=0,
            reread_rows=0,
            model_fingerprint=model_fingerprint_of(spec, target.project.sources),
            started_at=now,
            finished_at=now,
        )
    )
    evaluate_window(target)
    publish_window(target, 1)
    shutil.rmtree(local)


def sealed(window: Window) -> Seal:
    """The last seal of a window without dead letters."""
    return Seal(
        window=window.key,
        generation=1,
        step=1,
        window_step=1,
        final=True,
        model_fingerprint="",
        progress={},
        base_seen=[],
        seen=[],
        scores=[],
        sealed_at=datetime.now(UTC),
        runtime="local",
    )


def made_up(folder: Path) -> Path:
    """The folder of a window as a trainer leaves it."""
    for name in ("checkpoint/model", "saved_model"):
        (folder / name).mkdir(parents=True)
        (folder / name / "counts.json").write_text("{}")
    point = StepPoint(step=1, seconds=1.0, rows={"clicks": ROWS})
    (folder / STEPS_NAME).write_text(point.model_dump_json() + "\n")
    writer = ScoreWriter(folder / SCORES_FOLDER, [PARADIGM])
    ids = np.arange(ROWS)
    rows = Minibatch(
        feed="stream",
        row_ids=ids,
        event_ids=ids,
        sources=np.zeros(ROWS, np.int32),
        labels=(ids % 2).astype(np.float32),
        dense=np.zeros((ROWS, 0), np.float32),
        ids=np.zeros((ROWS, 0), np.int64),
    )
    writer.append(rows, np.linspace(0, 1, ROWS, dtype=np.float32).reshape(-1, 1))
    writer.seal()
    return folder


def looks(target: LineTarget, count: int) -> dict[str, Callable[[], object]]:
    """What is measured, on the last window of a home; a run trains the window after it."""
    grid = target.pipeline.dataset.grid
    last = grid.at(START + (count - 1) * HOUR)
    at = target.at(last)
    return {
        "evaluate": lambda: evaluate_window(at),
        "publish": lambda: publish_window(at, 1),
        "why": lambda: why_window(at, lambda: datetime.now(UTC)),
        "run": lambda: Run(target).execute(last.key, last.key),
    }


def measured(counted: Counted, target: LineTarget, count: int) -> dict[str, Cost]:
    """Each look, three times; a first one is for what Python imports."""
    costs: dict[str, Cost] = {}
    for name, look in looks(target, count).items():
        look()
        costs[name] = Cost()
        for _ in range(3):
            with counted.into(costs[name]):
                look()
    return costs


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main() -> None:
    """Build both homes, look at them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=9000)
    parser.add_argument("--folder", type=Path, help="where the homes go (default: a new one)")
    given = parser.parse_args()
    counted = Counted()
    with tempfile.TemporaryDirectory(prefix="year-", dir=given.folder) as folder:
        few = build(Path(folder) / "few", FEW)
        began, cpu = time.monotonic(), time.process_time()
        many = build(Path(folder) / "many", given.windows)
        spent, used = time.monotonic() - began, time.process_time() - cpu
        print(f"{given.windows} windows made in {spent:.0f} s ({used:.0f} CPU s)")
        of_few, of_many = measured(counted, few, FEW), measured(counted, many, given.windows)
        for name in of_few:
            print(f"{name:9} {FEW:6} windows: {of_few[name].told()}")
            print(f"{name:9} {given.windows:6} windows: {of_many[name].told()}")
        grid = many.pipeline.dataset.grid
        first = max(0, given.windows - MONTH)
        month = [grid.at(START + n * HOUR) for n in range(first, given.windows)]
        took = timed(lambda: backfill_cost(many, month, lambda: datetime.now(UTC), reprocess=False))
        print(f"explain of {len(month)} windows: {took:.1f} s")
        keys = [grid.at(START + n * HOUR).key for n in range(given.windows)]
        took = timed(lambda: summarise_windows(many.pipeline, many.chain, keys))
        print(f"report of {given.windows} windows: {took:.1f} s")


if __name__ == "__main__":
    main()
