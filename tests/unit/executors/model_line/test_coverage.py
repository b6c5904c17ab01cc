"""Which rows a line has covered, and what may follow: `starts`, `ends`, offsets that change."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.links import link, window_of
from support.model_lines import keep_checkpoint, record
from support.stages import memory_source, pipeline
from support.there import there

from forebay.datatasks.planning.operations import shares_of
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import ConfigError
from forebay.executors.model_line.adjoining import (
    coverage_after,
    covered_by,
    require_adjoining,
    require_all_adjoining,
)
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.paths import Home


class CoveredLine:
    """A line of one source whose declaration changes between its windows, without training.

    Days of March 2026, or windows by their keys; each is planned as declared at that time.
    """

    def __init__(self, home: Home) -> None:
        self.chain = ModelChain(home, "ads")
        self.source = memory_source("a")
        self.offset_days = 0
        self.cut = self.reason = ""
        self.partitions: dict[str, tuple[int, int]] = {}

    def declare(self, **keys: str) -> None:
        """All that the source declares of its own time."""
        self.source = memory_source("a", **keys)

    @staticmethod
    def key(day: int | str) -> str:
        return day if isinstance(day, str) else f"2026-03-{day:02}"

    def plan(self, day: int | str, generation: int = 1) -> WindowPlan:
        window = window_of(self.key(day))
        stream = {"sources": ["a"], "offset": f"{self.offset_days}d"}
        spec = pipeline(("a",), dataset={"streams": {"a": stream}})
        (share,) = shares_of(spec, {"a": self.source}, [window])["a"]
        looked = {"offsets": self.partitions, "cut": self.cut, "reason": self.reason}
        plan = share.plan(**({} if share.span is None else looked))
        return WindowPlan(
            window=window.key,
            generation=generation,
            start=window.start,
            end=window.end,
            sources={"a": plan},
            fingerprint="",
        )

    def require(self, *plans: WindowPlan) -> None:
        require_all_adjoining(self.chain, {"a": self.source}, plans)

    def train(self, *days: int | str, generation: int = 1) -> list[Link]:
        """As a trainer does, or refuses to."""
        return [self._train(self.plan(day, generation)) for day in days]

    def _train(self, plan: WindowPlan) -> Link:
        parent = self.chain.before(plan.as_window)
        require_adjoining(self.chain, {"a": self.source}, plan, covered_by(parent))
        seen = {"a": 0}
        made = link(
            plan.window,
            seen,
            seen,
            generation=plan.generation,
            parent=(parent.window, parent.generation) if parent else None,
            coverage=coverage_after(plan, covered_by(parent)),
        )
        record(self.chain, made)
        return keep_checkpoint(self.chain, made)


@pytest.fixture
def line(tmp_path: Path) -> CoveredLine:
    return CoveredLine(Home(tmp_path))


def refused(line: CoveredLine, day: int, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        line.train(day)
    assert line.chain.newest(line.key(day)) is None


@pytest.mark.parametrize(
    ("declared", "days", "left_out"),
    [
        ({"starts": "2026-03-03T06:00:00Z"}, [3], "2026-03-03T00:00Z to 2026-03-03T06:00Z"),
        ({"starts": "2026-03-04T12:00:00Z"}, [3, 4], "2026-03-03T00:00Z to 2026-03-04T12:00Z"),
        ({"ends": "2026-03-03T06:00:00Z"}, [3, 4], "2026-03-03T06:00Z to 2026-03-05T00:00Z"),
    ],
)
def test_what_was_declared_away_may_not_come_back_unnoticed(
    line: CoveredLine, declared: dict[str, str], days: list[int], left_out: str
) -> None:
    line.train(1, 2)
    line.declare(**declared)
    line.train(*days)
    line.declare()
    following = days[-1] + 1
    refused(
        line,
        following,
        f"rows of source 'a' of {left_out} would never be trained .* run ads --from 2026-03-03 "
        f"--to 2026-03-0{following} --reprocess",
    )
    line.train(*range(3, following), generation=2)
    line.train(following)


def test_a_later_start_leaves_a_gap_that_is_named_and_stays(line: CoveredLine) -> None:
    line.train(1, 2)
    line.declare(starts="2026-03-03T06:00:00Z")
    (found,) = line.train(3)
    gap = there(found.coverage["a"].gap)
    assert str(gap) == "2026-03-03T00:00Z to 2026-03-03T06:00Z"
    assert gap.reason == "before start"
    (later,) = line.train(4)
    assert later.coverage["a"].gap is None
    assert [str(each) for each in later.coverage["a"].left_out] == [str(gap)]
    line.declare(starts="2026-03-02")
    refused(line, 5, "of 2026-03-03T00:00Z to 2026-03-03T06:00Z would never be trained")
    line.declare(starts="2026-03-05")
    line.train(5)


def test_a_source_that_begins_after_its_line_has_no_gap(line: CoveredLine) -> None:
    line.declare(starts="2026-03-03")
    links = line.train(1, 2, 3, 4)
    assert [each.coverage["a"].gap for each in links] == [None] * 4
    assert [each.coverage["a"].reason for each in links] == ["before start"] * 2 + ["", ""]
    line.declare(starts="2026-02-01")
    refused(line, 5, "of 2026-03-01T00:00Z to 2026-03-03T00:00Z would never be trained")


def test_what_was_before_the_line_is_no_gap(line: CoveredLine) -> None:
    line.declare(starts="2026-03-02")
    line.train(3)
    line.declare(starts="2026-02-01")
    line.train(4)


def test_the_warm_start_counts(line: CoveredLine) -> None:
    line.declare(starts="2026-02-20")
    line.train("2026-02-01_2026-03-01", 1)
    line.declare()
    refused(line, 2, r"2026-02-01T00:00Z to 2026-02-20T00:00Z .*forget ads 2026-02-01_2026-03-01")


def test_a_line_may_begin_beside_a_warm_start_that_was_left(line: CoveredLine) -> None:
    """A job was killed after its warm start; the next one begins with a later window."""
    line.train("2026-02-01_2026-03-01")
    line.require(line.plan("2026-02-01_2026-03-03"), line.plan(3))
    line.require(line.plan("2026-02-10_2026-03-01"), line.plan(1))
    line.require(line.plan(3))
    line.offset_days = 1
    refused(line, 1, "would be trained twice")  # it is built on it
    line.offset_days = 0
    line.train(1)
    refused(line, 3, "2026-03-02T00:00Z to 2026-03-03T00:00Z would never be trained")


@pytest.mark.parametrize(
    ("before", "now", "what"),
    [
        (0, 1, "2026-03-01T00:00Z to 2026-03-02T00:00Z would be trained twice"),
        (1, 0, "2026-03-01T00:00Z to 2026-03-02T00:00Z would never be trained"),
    ],
)
def test_rows_begin_where_others_ended(line: CoveredLine, before: int, now: int, what: str) -> None:
    line.offset_days = before
    line.train(1)
    line.offset_days = now
    refused(line, 2, f"window 2026-03-02: rows of source 'a' of {what}")
    line.offset_days = before
    line.train(2)


def test_an_offset_that_shrinks_as_a_source_begins_is_a_gap_in_its_time(line: CoveredLine) -> None:
    line.offset_days = 1
    line.train(1)
    line.offset_days = 0
    line.declare(starts="2026-03-02")
    (found,) = line.train(2)
    assert str(found.coverage["a"].gap) == "2026-03-01T00:00Z to 2026-03-02T00:00Z"


def test_a_window_that_goes_on_without_its_source_counts_as_asked(line: CoveredLine) -> None:
    line.train(1)
    line.reason = "skipped: no marker"
    (found,) = line.train(2)
    assert found.coverage["a"].reason == "skipped: no marker"
    line.reason = ""
    line.train(3)


def test_rows_belong_to_windows_by_the_same_as_before(line: CoveredLine) -> None:
    line.cut = "column 'at'"
    line.train(1)
    line.cut = ""
    line.declare(ends="2026-03-02")
    line.train(2)
    line.declare(starts="2026-03-03")
    line.cut = "column 'sent'"
    refused(line, 3, r"by column 'sent' now, and by column 'at' in the windows before it")


def test_partitions_go_on_at_the_offset_where_they_ended(line: CoveredLine) -> None:
    line.partitions = {"0": (0, 10), "1": (5, 7)}
    line.train(1)
    line.partitions = {"0": (10, 10), "1": (9, 12), "2": (0, 4)}
    refused(line, 2, "in partition 1, offsets 7 to 9, would never be trained")
    line.declare(starts="2026-03-02")  # the topic was made anew
    line.train(2)


def test_a_new_partition_is_trained_from_its_beginning(line: CoveredLine) -> None:
    """Where another line planned the log at another path first, borders are elsewhere."""
    line.partitions = {"0": (0, 10)}
    line.train(1)
    line.partitions = {"0": (10, 12), "1": (14, 20)}
    refused(line, 2, "in partition 1, offsets 0 to 14, would never be trained")
    line.partitions = {"0": (10, 12), "1": (0, 20)}
    line.train(2)


def test_a_partition_that_comes_back_goes_on_where_it_ended(line: CoveredLine) -> None:
    line.partitions = {"0": (0, 10), "1": (0, 7)}
    line.train(1)
    line.partitions = {"0": (10, 12)}
    line.train(2)
    ways = {0: "0 to 7, would be trained twice", 9: "7 to 9, would never be trained"}
    for begins, what in ways.items():
        line.partitions = {"0": (12, 12), "1": (begins, 9)}
        refused(line, 3, f"in partition 1, offsets {what}")
    line.partitions = {"0": (12, 12), "1": (7, 9)}
    line.train(3)


def test_after_a_window_that_left_a_log_out_partitions_begin_anywhere(line: CoveredLine) -> None:
    line.partitions = {"0": (0, 10)}
    line.train(1)
    line.partitions, line.reason = {}, "skipped: no marker"
    line.train(2)
    line.partitions, line.reason = {"0": (15, 20), "1": (3, 4)}, ""
    line.train(3)


def test_windows_of_one_job_follow_each_other(line: CoveredLine) -> None:
    line.train(1)
    line.require(*(line.plan(day) for day in (2, 3, 4)))
    line.declare(starts="2026-03-03")
    first = line.plan(2)
    line.declare()
    with pytest.raises(ConfigError, match=r"window 2026-03-02: .* never be trained"):
        line.require(first, line.plan(3))


def test_a_window_that_goes_on_is_refused_before_it_is_trained(line: CoveredLine) -> None:
    """Its instants are known as it is opened; its rows and offsets are not."""
    line.train(1)
    line.require(line.plan(2).model_copy(update={"is_open": True}))
    line.offset_days = 1
    opened = line.plan(2).model_copy(update={"is_open": True})
    with pytest.raises(ConfigError, match="would be trained twice"):
        line.require(opened)
