"""Requires that the rows of a window begin where those before it ended: none twice, none never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from forebay.config.specs.datasets import source_of
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval, is_warm_start
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.errors import ConfigError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import retrain_command, retrained_from
from forebay.executors.model_line.coverage import (
    Coverage,
    extended,
    misplaced,
    torn_partition,
    withheld,
)
from forebay.executors.model_line.link import Link

Covered = Mapping[str, Coverage]


class WithheldError(ConfigError):
    """Rows that a line was trained without have come back. first: the window that they are of."""

    def __init__(self, message: str, first: str) -> None:
        super().__init__(message)
        self.first = first


_UNDO = (
    "Undo the change, train the line again from its start (--reprocess; in Airflow, a backfill "
    "over all its runs), or train another line (--line NAME)"
)


def coverage_after(plan: WindowPlan, before: Covered) -> dict[str, Coverage]:
    """What each source has been asked for once a window is trained, by use."""
    return {name: extended(before.get(name), plan, one) for name, one in plan.sources.items()}


def covered_by(link: Link | None) -> Covered:
    """What the line has asked for up to a link; nothing before it begins."""
    return {} if link is None else link.coverage


def covered_before(chain: ModelChain, plan: WindowPlan) -> Covered:
    """By the link that a window is built on.

    A line that begins with this window is not built on the warm start of another beginning, which a
    job that was killed may have left.
    """
    before = chain.before(plan.as_window)
    elsewhere = before is not None and is_warm_start(before.window) and before.end != plan.start
    return {} if elsewhere and not chain.is_begun() else covered_by(before)


def require_all_adjoining(
    chain: ModelChain, sources: Mapping[str, SourceSpec], plans: Iterable[WindowPlan]
) -> None:
    """As `require_adjoining`, for windows that one job trains in this order."""
    last: WindowPlan | None = None
    covered: Covered = {}
    for plan in plans:
        if last is None or last.end != plan.start:
            covered = covered_before(chain, plan)
        require_adjoining(chain, sources, plan, covered)
        if plan.is_open:  # what it has, and where the next one begins, shows once it is closed
            return
        last, covered = plan, coverage_after(plan, covered)


def require_adjoining(
    chain: ModelChain, sources: Mapping[str, SourceSpec], plan: WindowPlan, before: Covered
) -> None:
    """Require that the rows of a window begin where those before it ended.

    Rows outside a source's `starts` and `ends` do not exist, so they count as no gap, for as long
    as it declares so. Of a window that is open only the instants are known; the rest is looked at
    once it is closed.

    before: by the link that the window is built on.

    Raises:
        ConfigError: when rows of a source would be trained twice, or never.
    """
    for name, source in plan.sources.items():
        covered, spec = before.get(name), sources[source_of(name)]
        if covered is None:
            continue
        asked = extended(covered, plan, source)
        problem = _cut_problem(covered, source) or _place_problem(covered, asked, spec)
        if not plan.is_open:
            problem = problem or _partition_problem(covered, asked, spec)
        if problem:
            raise ConfigError(
                f"window {plan.window}: rows of source {name!r} {problem} on line "
                f"{chain.line!r}. {_UNDO}"
            )
        lost = withheld(asked, spec) if not plan.is_open else []
        if lost:
            first, last = lost[0], lost[-1]
            begin = _window_with(chain, source, first.start) or plan.window
            command = retrain_command(chain, begin, plan.window)
            raise WithheldError(
                f"window {plan.window}: rows of source {name!r} of {first} would never be trained "
                f"on line {chain.line!r}: it was trained without them ({first.reason}), and the "
                f"source declares that it has them now. What to do: train them (`{command}`; in "
                f"Airflow, a backfill that reprocesses windows from "
                f"{retrained_from(chain, begin)} on), or go on without them by declaring starts: "
                f"{last.end:%Y-%m-%dT%H:%M:%SZ}",
                begin,
            )


def _window_with(chain: ModelChain, source: SourcePlan, instant: datetime) -> str | None:
    start = instant + timedelta(seconds=source.offset_seconds)
    found = chain.over(Interval(start, start + timedelta(microseconds=1)))
    return found[0].key if found else None


def _cut_problem(covered: Coverage, source: SourcePlan) -> str:
    if not covered.cut or not source.cut or covered.cut == source.cut:
        return ""
    return (
        f"belong to windows by {source.cut} now, and by {covered.cut} in the windows before it: "
        "some rows would be trained twice, or never,"
    )


def _place_problem(covered: Coverage, asked: Coverage, spec: SourceSpec) -> str:
    span, is_twice = misplaced(covered, asked, spec.starts)
    if span.start == span.end:
        return ""
    return (
        f"of {span} would {'be trained twice' if is_twice else 'never be trained'} (the offset of "
        "their stream, `starts`, `ends` or dataset.timezone was another one before)"
    )


def _partition_problem(covered: Coverage, asked: Coverage, spec: SourceSpec) -> str:
    torn = torn_partition(covered, asked, spec.starts)
    if not torn:
        return ""
    ended, begins = covered.offsets.get(torn, (0, 0))[1], asked.offsets[torn][0]
    what = "be trained twice" if begins < ended else "never be trained"
    return (
        f"in partition {torn}, offsets {min(ended, begins):,} to {max(ended, begins):,}, would "
        f"{what}: the window before ended at {ended:,}, and this one begins at {begins:,}"
    )
