"""EventJudges: makes the judge of the rows of each window that a trainer opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from forebay.config.datasets import DatasetSpec, Feed
from forebay.config.feeds import source_feeds
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.config.windows import Interval, Spanned
from forebay.executors.judging.judge import EventJudge, JudgingLink
from forebay.executors.judging.sample import EventSample
from forebay.executors.judging.scorers import LinkScorers
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import ScoreWriter
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.system.instants import to_us


class EventJudges:
    """Makes the judge of each window; all share one learner, which keeps the link it loaded."""

    def __init__(
        self,
        pipeline: PipelineSpec,
        sources: Mapping[str, SourceSpec],
        layout: FeatureLayout,
        chain: ModelChain,
        make: Callable[[], Learner],
        load: Callable[[Learner, Link], None],
    ) -> None:
        """Nothing is made or loaded yet. make, load: see `LinkScorers`."""
        self._dataset = pipeline.dataset
        self._rows_max = pipeline.job.judge_rows_max
        places = {column.name: place for place, column in enumerate(layout.ids)}
        self._slices = {name: places[name] for name in pipeline.dataset.slices}
        # Stream rows are judged only if no batch row with a complete label will follow.
        has_batch = "batch" in source_feeds(pipeline, sources).values()
        self._feed: Feed = "batch" if has_batch else "stream"
        self._chain = chain
        self._scorers = LinkScorers(chain, make, load)

    def writer(self, folder: Path, columns: Sequence[str]) -> ScoreWriter:
        """A writer of scores that has room for judged rows."""
        labels = self._dataset.further_labels
        return ScoreWriter(folder, columns, self._slices, self._rows_max, labels)

    def judge(
        self, window: Spanned, parent: Link | None, columns: Sequence[str], writer: ScoreWriter
    ) -> EventJudge | None:
        """The judge of the rows of a window that is opened; None where nothing is judged.

        Args:
            window: which one.
            parent: the link that it is started from.
            columns: names of the score columns; none for a learner that only counts.
            writer: restored, with what was judged before.
        """
        if not columns or not self._rows_max:
            return None
        return EventJudge(
            links=judging_links(self._chain, self._dataset, window, parent),
            feed=self._feed,
            end=to_us(window.end),
            sample=EventSample(self._rows_max, writer.judged_ids()),
            columns=len(columns),
            scorer=self._scorers.scorer,
            writer=writer,
        )


def judging_links(
    chain: ModelChain, dataset: DatasetSpec, window: Spanned, parent: Link | None
) -> list[JudgingLink]:
    """The newest links that may judge rows of a window, in order: up to its parent.

    They reach two windows further back than the oldest events that its rows may be about, since
    days differ in length: one of them had ended when the first of those events happened.
    """
    if parent is None:
        return []
    since = window.start - dataset.label_delay - 2 * (window.end - window.start)
    before = chain.between(Interval(since, since), parent)
    return [JudgingLink(to_us(link.end), link.name) for link in before]
