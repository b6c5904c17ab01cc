"""However a window grows, it has the rows of its closed form, and every row is in one window."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from support.growing import DAY, growing_pipeline, some_rows
from support.projects import clicks_source, history_source, write_history
from support.whole_life.in_process import parse_footers_here

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.growth import WindowGrowth, open_window
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.errors import FencedError
from forebay.home.database.open import close_databases
from forebay.home.database.tables import borders
from forebay.home.paths import Home
from forebay.system.instants import to_us

parse_footers_here()
HOUR = timedelta(hours=1)
# Minutes that pass, and what is done then: rows of a partition, stamped so many minutes before or
# after the clock, or a look of the planner, perhaps of a new one, or of one beside it.
steps = st.lists(
    st.tuples(
        st.integers(0, 25),
        st.one_of(
            st.tuples(st.integers(0, 1), st.integers(-30, 5)),
            st.sampled_from(["look", "look again", "look elsewhere"]),
        ),
    ),
    min_size=6,
    max_size=25,
)


class Stream:
    """One life: hours of a stream whose windows grow one after the other."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, DAY + HOUR
        spec = {"name": "ads", **growing_pipeline(slice_seconds=300)}
        self.pipeline = PipelineSpec.model_validate(spec)
        starts = "2026-03-02T01:00"
        self.sources = {
            "history": SourceSpec.model_validate({"name": "history", **history_source()}),
            "clicks": SourceSpec.model_validate({"name": "clicks", **clicks_source(starts=starts)}),
        }
        write_history(root / "data/history", DAY - timedelta(days=1), 480, files=1)
        self.ledger = Ledger(Home(root / "home"), "ads")
        self.writers = [LogWriter(root / "data/clicks", each) for each in range(2)]
        self.published = [0, 0]
        self.newest = [self.now, self.now]
        self.growth: WindowGrowth | None = None
        self.elsewhere: WindowGrowth | None = None
        self.plan: WindowPlan | None = None
        self.closed: list[WindowPlan] = []

    def clock(self) -> datetime:
        return self.now

    def look(self, *, anew: bool) -> None:
        """Let the window grow that is open, and the next one, up to now."""
        while True:
            window = self.pipeline.dataset.grid.at(self.now)
            if self.plan is None:
                following = DAY + HOUR if not self.closed else self.closed[-1].end
                window = self.pipeline.dataset.grid.at(following)
                if window.start > self.now:
                    return
                self.plan = open_window(self.ledger, window, self.pipeline, self.sources)
                anew = True
            if anew or self.growth is None:
                self.growth = WindowGrowth(
                    self.ledger, self.plan, self.pipeline, self.sources, self.root, self.clock
                )
            try:
                for _ in self.growth.grow():
                    pass
            except FencedError:
                self.growth.restore()
                continue
            if not self.growth.is_complete:
                assert self.now < self.plan.end
                return
            self.closed.append(self.growth.close())
            self.plan = self.growth = self.elsewhere = None

    def look_elsewhere(self) -> None:
        """The driver of another line, which trains the window from the same plan."""
        if self.plan is None:
            return
        if self.elsewhere is None:
            self.elsewhere = WindowGrowth(
                self.ledger, self.plan, self.pipeline, self.sources, self.root, self.clock
            )
        try:
            for _ in self.elsewhere.grow():
                pass
        except FencedError:
            self.elsewhere.restore()

    def publish(self, partition: int, minutes: int, number: int) -> None:
        stamp = max(self.newest[partition], self.now + timedelta(minutes=minutes))
        self.newest[partition] = stamp  # a log's do not fall
        self.writers[partition].append(some_rows(number, 3), stamp)
        self.published[partition] += 3


def offsets_of(tasks: pa.Table) -> dict[str, list[tuple[int, int]]]:
    """Rows of the log by partition, in the order of the tasks."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row in tasks.to_pylist():
        if row["source"] == "clicks":
            for each in row["ranges"]:
                base = int(Path(each["path"]).name.partition("-")[0])
                place = base + each["first"], base + each["end"]
                found.setdefault(row["partition"], []).append(place)
    return found


def inner_borders(ledger: Ledger, plan: WindowPlan) -> list[int]:
    inside = borders.c.instant > to_us(plan.start), borders.c.instant < to_us(plan.end)
    return ledger.database.read(
        lambda rows: list(rows.scalars(select(borders.c.instant).where(*inside)))
    )


@given(steps)
@settings(max_examples=25)
def test_a_window_that_grew_is_its_closed_form(
    life: list[tuple[int, tuple[int, int] | str]],
) -> None:
    with TemporaryDirectory() as folder, patch.dict(os.environ):
        stream = Stream(Path(folder))

        def at(now: datetime) -> None:
            stream.now = now
            os.environ["FOREBAY_CLOCK"] = f"{now.isoformat()}@0x0"

        at(stream.now)
        stream.publish(0, 0, 0)
        stream.publish(1, 0, 1)
        for number, (minutes, what) in enumerate(life, start=2):
            at(stream.now + timedelta(minutes=minutes))
            if what == "look elsewhere":
                stream.look_elsewhere()
            elif isinstance(what, str):
                stream.look(anew=what == "look again")
            else:
                stream.publish(*what, number)
        at(stream.now + 2 * HOUR)
        stream.look(anew=True)
        at(stream.now + 3 * HOUR)
        stream.look(anew=False)
        assert stream.closed
        reached = [0, 0]
        for plan in stream.closed:
            tasks = stream.ledger.tasks(plan.window, plan.generation)
            assert not plan.is_open
            names = tasks["task_id"].to_pylist()
            assert len(names) == len(set(names)) == plan.tasks
            told = plan.sources["clicks"].offsets
            for partition, places in offsets_of(tasks).items():
                at_partition = int(partition)
                for first, end in places:
                    assert first == reached[at_partition], "contiguous"
                    reached[at_partition] = end
                assert told[partition] == (places[0][0], places[-1][1])
            assert {name for name, (first, end) in told.items() if first < end} == set(
                offsets_of(tasks)
            )
            history = sum(row["rows"] for row in tasks.to_pylist() if row["source"] == "history")
            assert history == plan.sources["history"].rows
            assert not stream.ledger.slices(plan.window, plan.generation)
            assert not inner_borders(stream.ledger, plan)
        # Planned again from what is stored, each window asks for the same rows.
        at(stream.now + timedelta(days=1))
        windows = [plan.as_window for plan in stream.closed]
        again = plan_windows(
            stream.root,
            stream.pipeline,
            stream.sources,
            stream.ledger,
            windows,
            warm_start=None,
            again={window.key for window in windows},
            clock=stream.clock,
        )
        for plan, closed in zip(stream.closed, again.plans, strict=True):
            assert closed.generation == plan.generation + 1
            assert closed.fingerprint == plan.fingerprint
            assert closed.sources["clicks"].offsets == plan.sources["clicks"].offsets
        # What no window has is stamped after the last one's end, or follows such a row.
        assert all(end <= there for end, there in zip(reached, stream.published, strict=True))
        close_databases()
