"""The plan of an open window grows: streams by slices, batch sources once they are complete.

A slice of a stream is a span of time whose borders are decided as those of windows are (Primus
§4.3.1: tasks of a stream have no end; here each has one, and the next follows), so the window that
is closed has the rows that its closed form would have: what comes after a border was decided is in
the next slice, or the next window.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from forebay.config.specs.datasets import source_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval, Window
from forebay.datatasks.planning.lister import Answers, Late, ScanFacts, SourceLister
from forebay.datatasks.planning.operations import (
    Clock,
    Listed,
    Share,
    asks_for,
    fingerprint_of,
    listed,
    nothing_in,
    scan_shares,
    shares_of,
)
from forebay.datatasks.planning.slices import Slices, of_batch, of_stream
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.manifests import arrow_bytes, in_task_order, tables_of, with_ids
from forebay.datatasks.plans.plan import NO_ROWS, SourcePlan, WindowPlan
from forebay.datatasks.plans.slice_rows import SliceRow
from forebay.datatasks.sources.common.contract.base import Scan, Source
from forebay.datatasks.sources.common.contract.deleted_rows import RowsDeletedError
from forebay.errors import InfrastructureError

_LOCK_SECONDS = 60.0


@dataclass
class _Whole(Answers):
    """What a batch source is asked for the window, once. Its wait counts from the window's end."""

    end: datetime
    listed: Listed | None = None

    def has(self, _share: Share) -> bool:
        return self.listed is not None

    def keep(self, _share: Share, listed: Listed, _at: datetime, _scan: ScanFacts) -> None:
        self.listed = listed

    def late_since(self, _share: Share, _at: datetime, _reason: str) -> datetime:
        return self.end


@dataclass
class _Use:
    """One use of a source. until: see `SliceRow`; None before its first addition.

    number: of the last stored one. source: opened, from one slice to the next. look_at: when it is
    asked again, while it is late.
    """

    share: Share
    lister: SourceLister
    tasks: int = 0
    until: datetime | None = None
    number: int | None = None
    plan: SourcePlan | None = None
    source: Source | None = None
    look_at: datetime | None = None

    @property
    def is_sliced(self) -> bool:
        bounded = kind_named(self.lister.spec.kind).bounded
        window = self.share.window
        return not bounded and self.share.offset < window.end - window.start

    @property
    def is_complete(self) -> bool:
        return self.until == (self.share.span or self.share.whole).end

    def scan(self, span: Interval) -> tuple[Source, Scan]:
        self.source = self.source or self.lister.open()
        try:
            return self.source, self.source.scan([span])
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        source, self.source = self.source, None
        if source is not None:
            source.close()


def open_window(
    ledger: Ledger, window: Window, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> WindowPlan:
    """The open plan of a window, which goes on now or ended while it was trained; made if needed.

    One of other streams or offsets than are declared now is replaced: the window starts over.

    Raises:
        ConfigError: as `shares_of`.
        FencedError: when another process plans the window at this moment.
    """
    state = ledger.state(window.key)
    shares = shares_of(pipeline, sources, [window])
    found = {
        name: share.plan() if share.span is None else share.plan(rows=None)
        for name, (share,) in shares.items()
    }
    if state.plan is not None and is_declared(state.plan, pipeline, sources):
        return state.plan
    name = uuid.uuid4().hex
    plan = WindowPlan(
        window=window.key,
        generation=state.next_generation,
        start=window.start,
        end=window.end,
        sources=found,
        fingerprint=name,
        is_open=True,
        opened_as=name,
        slice_seconds=pipeline.job.continuous.slice.total_seconds(),
    )
    ledger.record_plan(plan, {})
    return plan


def is_declared(
    plan: WindowPlan, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> bool:
    """Whether a plan is open, of the streams that are declared now."""
    shares = shares_of(pipeline, sources, [plan.as_window])
    return plan.is_open and asks_for(plan, [share.plan() for (share,) in shares.values()])


class WindowGrowth:
    """Plans what an open window has not got yet. Used by one thread.

    horizon: the last slice that was over when it grew; -1 before the first. late: why a batch
    source is waited for, by use.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan: WindowPlan,
        pipeline: PipelineSpec,
        sources: Mapping[str, SourceSpec],
        root: Path,
        clock: Clock,
    ) -> None:
        """sources: with all that is needed to open them."""
        length = timedelta(seconds=plan.slice_seconds)
        self._ledger, self._plan, self._clock = ledger, plan, clock
        self._grid, self._patience = pipeline.dataset.grid, pipeline.schedule.plan_timeout
        self.slices = Slices(plan.start, plan.end, length)
        self._uses = {
            name: _Use(
                share, SourceLister(sources[source_of(name)], root, ledger, clock, 1, _LOCK_SECONDS)
            )
            for name, (share,) in shares_of(pipeline, sources, [plan.as_window]).items()
        }
        self.late: dict[str, str] = {}
        self.horizon = -1
        self.trouble_at: datetime | None = None
        self.restore()

    def restore(self) -> None:
        """Go on after what is stored of the plan."""
        plan = self._plan
        for use in self._uses.values():
            use.tasks, use.until, use.number, use.plan = 0, None, None, None
        for row in self._ledger.slices(plan.window, plan.generation):
            use = self._uses[row.source]
            use.until, use.number, use.plan = row.until, row.number, row.plan
            use.tasks += _count(row)

    @property
    def is_complete(self) -> bool:
        """Whether the window has all that it gets: it may be closed."""
        return all(use.is_complete for use in self._uses.values())

    def is_overdue(self) -> bool:
        """Asked at each error: whether they go on for longer than planning may take, after the end.

        trouble_at, the first of them, is the caller's to forget once all is well.
        """
        now = self._clock()
        self.trouble_at = self.trouble_at or now
        return now > max(self.trouble_at, self._plan.end) + self._patience

    def grow(self) -> Iterator[SliceRow]:
        """Plan and store what has become due, use by use.

        Raises:
            NotReadyError: when a batch source is late for too long, and its policy is `fail`.
            DataError: when what is stored cannot be planned.
            InfrastructureError: when a storage does not answer; the same call may be tried again.
            FencedError: when another process lets the window grow, or has closed it.
        """
        number = self.horizon = self.slices.over(self._clock()) - 1
        trouble: InfrastructureError | None = None
        for name, use in self._uses.items():
            if use.is_complete:
                continue
            try:
                added = self._slice(use, number) if use.is_sliced else self._whole(use, number)
            except InfrastructureError as error:  # others may be there
                trouble, self.late[name] = trouble or error, str(error)
                continue
            if use.is_sliced:
                self.late.pop(name, None)
            if added is None:
                continue
            is_end = use.number is None or added.until == (use.share.span or use.share.whole).end
            if use.is_sliced and not added.tasks and not is_end:
                use.until = added.until  # others plan it again, with what follows
                continue
            self._ledger.add_slice(self._plan, added, use.number)
            self.late.pop(name, None)
            use.until, use.number, use.plan = added.until, added.number, added.plan
            use.tasks += _count(added)
            yield added
        if trouble is not None:
            raise trouble

    def release(self) -> None:
        """Close what is open; the window may grow on."""
        for use in self._uses.values():
            use.release()

    def close(self) -> WindowPlan:
        """What the window has become, stored: the figures of its closed form, the tasks it grew by.

        Raises:
            ForebayError: as `grow`.
        """
        plan, grown = self._plan, self._ledger.slices(self._plan.window, self._plan.generation)
        found = {
            name: self._closed(use, [row.plan for row in grown if row.source == name])
            for name, use in self._uses.items()
        }
        by_stream = defaultdict[str, list[pa.Table]](list)
        for row in grown:
            by_stream[found[row.source].stream] += tables_of([row.tasks])
        closed = plan.model_copy(
            update={"sources": found, "fingerprint": fingerprint_of(found), "is_open": False}
        )
        tables = {
            stream: in_task_order(by_stream[stream], found)
            for stream in dict.fromkeys(each.stream for each in found.values())
        }
        self._ledger.close_plan(closed, tables, self._inner_borders(), len(grown))
        return closed

    def _slice(self, use: _Use, number: int) -> SliceRow | None:
        """What a stream has published since the last slice; None while none is over."""
        span = use.share.span
        if span is None:
            return _added(use, 0, nothing_in(use.share), use.share.whole.end)
        end = min(span.end, self.slices.ends_at(number) - use.share.offset)
        start = use.until or span.start
        if number < 0 or start >= end:
            return None
        source, scan = use.scan(Interval(start, end))
        tasks = of_stream(with_ids(scan.tasks, use.share.source, use.tasks), number)
        return _added(use, number, Listed(listed(use.share, scan, 0, source.cut).plan, tasks), end)

    def _whole(self, use: _Use, number: int) -> SliceRow | None:
        """All of a batch source; None while it is late."""
        now = self._clock()
        if use.look_at is not None and now < use.look_at:
            return None
        use.look_at = now + self.slices.length  # its storage is asked once in a slice
        answers = _Whole(self._plan.end)
        late = use.lister.look(answers, [use.share])
        if isinstance(late, Late) or answers.listed is None:
            self.late[use.share.source] = late.reason if late else ""
            return None
        first = max(0, number)
        listed = answers.listed
        tasks = of_batch(listed.tasks, first, self.slices.count)
        end = (use.share.span or use.share.whole).end
        return _added(use, first, Listed(listed.plan, tasks), end)

    def _closed(self, use: _Use, grown: Sequence[SourcePlan]) -> SourcePlan:
        """grown: what its slices were, from its first."""
        if not use.is_sliced or use.share.span is None:
            return use.plan or use.share.plan()
        try:
            with closing(use.lister.open()) as source:
                found, _ = scan_shares(source, [use.share])
            plan = found[use.share.window.key].plan
        except RowsDeletedError:  # since they were planned, and they are trained by now
            plan = _joined(grown)
        return plan.model_copy(update={"tasks": use.tasks})

    def _inner_borders(self) -> dict[str, list[datetime]]:
        """Borders of slices, by source: none that is a border of a window of one of its streams."""
        grid = self._grid
        found: dict[str, list[datetime]] = {}
        offsets = defaultdict[str, set[timedelta]](set)
        for name, use in self._uses.items():
            offsets[source_of(name)].add(use.share.offset)
        for name, use in self._uses.items():
            if use.is_sliced and use.share.span is not None:
                span, source = use.share.span, source_of(name)
                ends = (self.slices.ends_at(n) - use.share.offset for n in range(self.slices.count))
                found.setdefault(source, []).extend(
                    end
                    for end in ends
                    if span.start < end < span.end
                    and not any(grid.at(end + each).start == end + each for each in offsets[source])
                )
        return found


def _joined(grown: Sequence[SourcePlan]) -> SourcePlan:
    """What the slices of a stream are together; where it differs from one scan of all: `files`."""
    rows = [each.rows for each in grown if each.rows is not None]
    offsets: dict[str, tuple[int, int]] = {}
    for each in grown:
        for partition, (first, end) in each.offsets.items():
            offsets[partition] = offsets.get(partition, (first, end))[0], end
    digest = hashlib.sha256("|".join(each.fingerprint for each in grown).encode())
    return grown[-1].model_copy(
        update={
            "rows": sum(rows) if len(rows) == len(grown) else None,
            "files": sum(each.files for each in grown),
            "reason": NO_ROWS if all(each.reason for each in grown) else "",
            "fingerprint": digest.hexdigest()[:32],
            "offsets": offsets,
        }
    )


def _count(row: SliceRow) -> int:
    return sum(table.num_rows for table in tables_of([row.tasks]))


def _added(use: _Use, number: int, listed: Listed, until: datetime) -> SliceRow:
    content = bytes(arrow_bytes(listed.tasks)) if listed.tasks.num_rows else b""
    return SliceRow(use.share.source, number, until, listed.plan, content)
