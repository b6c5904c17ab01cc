"""Samples of all sources of a pipeline: rows of spans that are spread over their newest weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from forebay.config.explain import declared_columns
from forebay.config.specs.datasets import DatasetSpec, Feed
from forebay.config.specs.feeds import source_feeds
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.look.sampling import Sample, SampleLimits, sample_rows, spread_spans
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Describes, Description, Source
from forebay.mixture.features.layout import FeatureLayout

SPANS = 12
ROWS_MAX = 20_000  # of each source; 2,000 positives give a share to 2 points
ROWS_ENOUGH = 4_000
# Of the spans; tried one after the other until there are enough rows.
_WIDTHS = (timedelta(hours=1), timedelta(hours=8), timedelta(days=3))
LONGEST = _WIDTHS[-1] * SPANS  # older rows say little about future ones
SECONDS_MAX = 6.0
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class SourceSample:
    """Sampled rows of one source.

    offset: of its stream. over: the time that they were drawn from. rate: the source's rows an
    hour, None where that is not known. stored: what the storage says of itself.
    """

    spec: SourceSpec
    feed: Feed
    offset: timedelta
    over: Interval
    sample: Sample
    rate: float | None
    stored: Description


_EARLIEST = datetime(1, 1, 1, tzinfo=UTC) + 2 * LONGEST


def sample_sources(
    pipeline: PipelineSpec, sources: Mapping[str, SourceSpec], root: Path
) -> dict[str, SourceSample]:
    """Rows of every source that has any, by the name of each use.

    Raises:
        ForebayError: when a source does not answer, or holds data that cannot be read.
    """
    found: dict[str, SourceSample] = {}
    layout = FeatureLayout.of(pipeline.dataset, declared_columns(pipeline, sources))
    drawn: dict[str, SourceSample | None] = {}
    feeds = source_feeds(pipeline, sources)
    for use in pipeline.uses:
        feed, offset = feeds[use.name], pipeline.dataset.streams[use.stream].offset
        if use.source not in drawn:
            with closing(opened_for_sample(sources[use.source], root)) as source:
                stored = Description({})
                if isinstance(source, Describes):
                    stored = source.describe()
                if stored.empty_reason:
                    drawn[use.source] = None
                    continue
                over = _time_of(source.spec, stored, pipeline)
                columns = with_times(sources[use.source], pipeline.dataset, layout.stored_columns)
                sample, rate = _sampled(source, over, columns)
                drawn[use.source] = SourceSample(
                    source.spec, feed, offset, over, sample, rate, stored
                )
        rows = drawn[use.source]
        if rows is not None:
            found[use.name] = replace(rows, feed=feed, offset=offset)
    return found


def with_times(spec: SourceSpec, dataset: DatasetSpec, columns: Sequence[str]) -> list[str]:
    known_at = [label.known_at for label in dataset.targets.values()]
    times = [column for column in (spec.event_time, *known_at) if column is not None]
    return list(dict.fromkeys([*columns, *(each for each in times if each in spec.columns)]))


def opened_for_sample(spec: SourceSpec, root: Path) -> Source:
    """A source whose bad rows are left out: only training counts them."""
    return open_source(spec.model_copy(update={"bad_rows": "dead_letter"}), root)


def _time_of(spec: SourceSpec, found: Description, pipeline: PipelineSpec) -> Interval:
    dataset = pipeline.dataset
    now = datetime.now(UTC)
    # A row may claim any time; around one that is plainly wrong there are no other rows.
    newest = now if found.newest is None else min(found.newest, now + LONGEST) + _MOMENT
    newest = max(newest, _EARLIEST)
    end = min(newest, spec.ends or newest)
    read_from = pipeline.train.warm_start or dataset.start
    first = spec.starts or read_from - max(each.offset for each in dataset.streams.values())
    start = max(first, end - LONGEST) if first < end else end - LONGEST
    return Interval(start, end)


def _sampled(source: Source, over: Interval, columns: Sequence[str]) -> tuple[Sample, float | None]:
    """Rows of ever wider spans until there are enough, and how many there are an hour."""
    limits = SampleLimits(seconds=SECONDS_MAX)
    for width in _WIDTHS:
        spans = spread_spans(over, SPANS, width)
        if source.spec.event_time is None:  # paths say the time of rows, a day at least
            spans = _whole_days(spans)
        sample = sample_rows(source, spans, columns, limits, ROWS_MAX)
        if sample.table.num_rows >= ROWS_ENOUGH or limits.are_spent:
            break
        if width * SPANS >= over.end - over.start:
            break
    rows = sample.read_rows if sample.is_whole else sample.stored_rows
    hours = sum((span.end - span.start for span in spans), timedelta(0)) / timedelta(hours=1)
    return sample, None if rows is None else rows / hours


def _whole_days(spans: Sequence[Interval]) -> list[Interval]:
    days = {
        first + timedelta(days=number)
        for first, last in ((each.start.date(), (each.end - _MOMENT).date()) for each in spans)
        for number in range((last - first).days + 1)
    }
    starts = [datetime.combine(day, time(), UTC) for day in sorted(days)]
    return [Interval(start, start + timedelta(days=1)) for start in starts]
