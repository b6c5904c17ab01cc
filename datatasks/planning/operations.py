"""What the operations of the graph work on: shares of windows, and what is listed for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.base import format_duration
from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import source_feeds
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import AFTER_END, BEFORE_START, SourceSpec
from forebay.config.specs.windows import HOUR, Interval, Window
from forebay.datatasks.plans.manifests import MANIFEST_SCHEMA, with_ids
from forebay.datatasks.plans.plan import NO_ROWS, SKIPPED, SourcePlan, WindowPlan
from forebay.datatasks.sources.common.contract.base import Scan, SourcePlanner
from forebay.errors import ConfigError, NotReadyError

# A source counts whole hours from `data_from`, the start of the span that it is asked for: in the
# tasks that it plans and in the chunks that it reads. Everyone else counts from the start of the
# window's data, which all sources of a stream share: a manifest, a lease, a queue. The two differ
# by the source's hour base, where the source begins inside the window.


def window_hours(source_hours: npt.NDArray[np.int32], base: int) -> npt.NDArray[np.int32]:
    """Hours of a source's tasks or rows, counted from the start of the window's data."""
    return source_hours + source_hours.dtype.type(base) if base else source_hours


Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Listed:
    """The answer of one source operation: what is planned, and the tasks."""

    plan: SourcePlan
    tasks: pa.Table


@dataclass(frozen=True)
class Share:
    """One source's part of one window, before anything is looked at.

    source: the name of its use. span: the rows' time, clipped to the source's start and end; None
    when nothing is left. offset: of the stream.
    """

    window: Window
    stream: str
    source: str
    feed: Feed
    whole: Interval
    span: Interval | None
    reason: str
    offset: timedelta

    @property
    def hour_base(self) -> int:
        return 0 if self.span is None else (self.span.start - self.whole.start) // HOUR

    def plan(self, **facts: object) -> SourcePlan:
        span = self.span or self.whole
        values: dict[str, object] = {
            "stream": self.stream,
            "source": self.source,
            "feed": self.feed,
            "data_from": span.start,
            "data_to": span.end,
            "tasks": 0,
            "files": 0,
            "rows": 0,
            "reason": self.reason,
            "hour_base": self.hour_base,
            "offset_seconds": int(self.offset.total_seconds()),
        }
        return SourcePlan.model_validate(values | facts)


def shares_of(
    pipeline: PipelineSpec, sources: Mapping[str, SourceSpec], windows: Sequence[Window]
) -> dict[str, list[Share]]:
    """The shares of every use of a source in the windows, by its name, in the pipeline's order.

    Raises:
        ConfigError: for a source that is not declared, or whose rows would be in a window twice,
            and for a stream whose feed is not clear.
    """
    for name in pipeline.source_names:
        if name not in sources:
            raise ConfigError(f"pipeline {pipeline.name!r} reads source {name!r}: not declared")
    for each in pipeline.dataset.doubled_sources:
        raise ConfigError(
            f"pipeline {pipeline.name!r}: stream {each.stream!r} reads source {each.source!r}, and "
            f"stream {each.first!r} does with the same offset: each row would be in a window twice"
        )
    feeds = source_feeds(pipeline, sources)
    found: dict[str, list[Share]] = {}
    for use in pipeline.uses:
        offset, source = pipeline.dataset.streams[use.stream].offset, sources[use.source]
        found[use.name] = []
        for window in windows:
            whole = window.span.shifted_back(offset)
            part, feed = source.part_of(whole), feeds[use.name]
            share = Share(window, use.stream, use.name, feed, whole, *part, offset)
            found[use.name].append(share)
    return found


def not_over(window: Window, now: datetime) -> str:
    return (
        f"window {window.key} is not over: it ends at {window.end.isoformat()}, "
        f"and it is now {now.isoformat(timespec='seconds')}"
    )


def not_complete(source: str, span: Interval, reason: str) -> str:
    """Why a window waits for a source: what `forebay why` and the log of a waiting task say."""
    first, end = (f"{instant:%Y-%m-%dT%H:%MZ}" for instant in (span.start, span.end))
    return f"source {source!r} is not complete for {first} to {end}: {reason}"


def too_late(source: str, wait: timedelta, window: str, reason: str) -> NotReadyError:
    """What a late source comes to where its policy is `fail`."""
    waited = f" after {format_duration(wait)}" if wait else ""
    return NotReadyError(
        f"window {window}: source {source!r} is not complete{waited}: {reason} "
        "(wait for it, raise `ready.wait`, or set `ready.late: skip` to go on without it)"
    )


def nothing_in(share: Share) -> Listed:
    """The answer for a window that the source has no time in: before its start, after its end."""
    return Listed(share.plan(), MANIFEST_SCHEMA.empty_table())


def left_out(share: Share, reason: str) -> Listed:
    """The answer for a window that continues without a late source."""
    plan = share.plan(reason=SKIPPED + reason, fingerprint="skipped")
    return Listed(plan, MANIFEST_SCHEMA.empty_table())


def complete_among(source: SourcePlanner, shares: Sequence[Share]) -> list[Share]:
    spans = [(share, share.span) for share in shares if share.span is not None]
    found = source.readiness_of([span for _, span in spans])
    return [share for (share, _), each in zip(spans, found, strict=True) if each.ready]


def scan_shares(source: SourcePlanner, shares: Sequence[Share]) -> tuple[dict[str, Listed], int]:
    """One scan for shares that have time in the source and are complete, in order of time.

    The answers are by window key; with them, the calls to the storage that they took.
    """
    scan = source.scan([share.span for share in shares if share.span is not None])
    found = {
        share.window.key: listed(share, scan, at, source.cut) for at, share in enumerate(shares)
    }
    return found, scan.storage_calls


def span_tasks(scan: Scan, index: int) -> pa.Table:
    low, high = np.searchsorted(np.asarray(scan.tasks["span"]), [index, index + 1])
    return scan.tasks.slice(low, high - low)


def listed(share: Share, scan: Scan, index: int, cut: str) -> Listed:
    """One span of a scan as the answer for a window. cut: see `SourcePlanner.cut`."""
    tasks = span_tasks(scan, index)
    hours = pa.array(window_hours(np.asarray(tasks["hour"]), share.hour_base))
    tasks = tasks.set_column(tasks.schema.get_field_index("hour"), "hour", hours)
    counts = tasks["rows"]
    rows = None if counts.null_count else int(pc.sum(counts).as_py() or 0)
    paths = pc.list_flatten(tasks["ranges"].combine_chunks()).field("path")
    plan = share.plan(
        tasks=tasks.num_rows,
        files=pc.count_distinct(paths).as_py(),
        rows=rows,
        reason="" if tasks.num_rows else NO_ROWS,
        fingerprint=scan.fingerprints[index],
        offsets=scan.offsets[index] if scan.offsets else {},
        last_segments=scan.last_segments if index == len(scan.fingerprints) - 1 else {},
        cut=cut,
    )
    return Listed(plan, with_ids(tasks, share.source))


def identity_of(plan: SourcePlan) -> tuple[object, ...]:
    """Which rows a plan asks of which source: what its declaration decides, not its data."""
    return plan.source, plan.stream, plan.feed, plan.data_from, plan.data_to


def declaration_of(spec: SourceSpec) -> str:
    """A digest of what a declaration says about where rows are and how they are cut."""
    decides = {"kind", "options", "event_time", "starts", "ends"}
    return hashlib.sha256(spec.model_dump_json(include=decides).encode()).hexdigest()[:32]


def asks_for(plan: WindowPlan, declared: Iterable[SourcePlan]) -> bool:
    """Whether an open plan asks for the rows that are declared."""

    def asked(of: Iterable[SourcePlan]) -> list[tuple[object, ...]]:
        return [(*identity_of(one), one.reason in {BEFORE_START, AFTER_END}) for one in of]

    return asked(plan.sources.values()) == asked(declared)


def fingerprint_of(plans: Mapping[str, SourcePlan]) -> str:
    """A digest of everything that decides which rows a window has."""
    digest = hashlib.sha256()
    for name, plan in plans.items():
        facts = (name, plan.stream, plan.feed, plan.data_from, plan.data_to, plan.fingerprint)
        digest.update("|".join(str(fact) for fact in facts).encode())
        digest.update(b"\n")
    return digest.hexdigest()[:32]


def by_stream(found: Sequence[Listed]) -> dict[str, pa.Table]:
    """The joiner: one table for each stream, ordered by (hour, source order)."""
    tables: dict[str, list[pa.Table]] = {}
    for each in found:
        tables.setdefault(each.plan.stream, []).append(each.tasks)
    return {stream: _ordered(parts) for stream, parts in tables.items()}


def _ordered(parts: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts).combine_chunks()
    hours: npt.NDArray[np.int32] = np.asarray(table["hour"])
    if (np.diff(hours) < 0).any():
        table = table.take(pa.array(np.argsort(hours, kind="stable")))
    return table
