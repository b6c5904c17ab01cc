"""Event times of 1970, or of years to come: numbers of another unit than was declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from forebay.config.specs.registry import kind_named
from forebay.config.specs.windows import Interval
from forebay.datatasks.look.lags import newest_problem
from forebay.datatasks.look.sampling import Sample, SampleLimits, sample_rows
from forebay.datatasks.sources.common.values.far_times import AHEAD, are_far, far_words
from forebay.datatasks.sources.common.values.times import Times, times_of
from forebay.executors.advice.column_values import MOSTLY, ValueFinding
from forebay.executors.advice.samples import SECONDS_MAX, SourceSample, opened_for_sample
from forebay.system.instants import to_us

_ROWS_MAX = 1000
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_1971 = datetime(1971, 1, 1, tzinfo=UTC)


def time_findings(
    sampled: Mapping[str, SourceSample], root: Path, now: datetime
) -> Iterator[ValueFinding]:
    """At most one finding for each source. Of tables, rows of such times are looked for too."""
    for name, each in {one.spec.name: one for one in sampled.values()}.items():
        column, bounded = each.spec.event_time, kind_named(each.spec.kind).bounded
        if column is None or column not in each.spec.columns:
            continue
        times, now_us = _times(each.sample, column), to_us(now)
        if bounded and not are_far(times, now_us).any():
            times = np.concatenate([times, _far_rows(each, column, root, now)])
        far = times[are_far(times, now_us)]
        words = newest_problem(each.spec, each.stored, now) if bounded else ""
        if len(far):
            words = far_words(int(far[-1]), now_us, each.stored.columns.get(column, ""))
        if words:
            where = f"{len(far):,} of {len(times):,} rows" if len(far) else "the newest rows"
            message = (
                f"event times are wrong in {where} that were looked at ({words}): store numbers in "
                "the unit as which they are read, and null for no time"
            )
            yield ValueFinding(
                *("sources", name, ("event_time",), "event-times", message),
                "error" if len(far) >= MOSTLY * len(times) else "note",
            )


def _times(sample: Sample, column: str) -> Times:
    return times_of(sample.table.column(column).combine_chunks())


def _far_rows(each: SourceSample, column: str, root: Path, now: datetime) -> Times:
    """Event times of a table that are in no window, so that no other sample has them."""
    spans = [Interval(_FIRST, _1971), Interval(now + AHEAD, _LAST)]
    limits = SampleLimits(seconds=SECONDS_MAX)
    with closing(opened_for_sample(each.spec, root)) as source:
        return _times(sample_rows(source, spans, [column], limits, _ROWS_MAX), column)
