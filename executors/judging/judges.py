"""EventJudges: makes the judge of the rows of each window that a trainer opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay.config.specs.datasets import DatasetSpec, Feed
from forebay.config.specs.feeds import source_feeds
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval, Spanned
from forebay.errors import DataError
from forebay.executors.judging.judge import EventJudge, JudgingLink, Scorer
from forebay.executors.judging.sample import EventSample
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, Parent
from forebay.executors.window_files.scores import ScoreWriter
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.system.instants import to_us


@dataclass(eq=False)
class LinkScorers:
    """Loads checkpoints of one line into a second learner, which is made when one is needed.

    It takes the memory of a second model, and for each row a seventh of a training step's time; no
    variable of the one in training is touched.
    make: a learner of the line's pipeline. load: brings one to the state in which a link ended.
    """

    chain: ModelChain
    make: Callable[[], Learner]
    load: Callable[[Learner, Link], None]

    def __post_init__(self) -> None:
        self._learner: Learner | None = None
        self._standing: Parent | None = None

    def scorer(self, name: Parent) -> Scorer | None:
        """The model of a link; None where its checkpoint is no longer kept.

        Raises:
            DataError: when the checkpoint is kept but is not what was stored.
        """
        if self._learner is not None and self._standing == name:
            return self._learner.score
        link = self._kept(name)
        if link is None:
            return None
        if self._learner is None:
            self._learner = self.make()
        self._standing = None
        try:
            self.load(self._learner, link)
        except DataError:
            if self._kept(name) is None:
                return None  # it was removed while it was read
            raise
        self._standing = name
        return self._learner.score

    def _kept(self, name: Parent) -> Link | None:
        link = self.chain.link(name.window, name.generation)
        return link if link is not None and "checkpoint" in link.files else None


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
        labels = self._dataset.further_labels
        return ScoreWriter(folder, columns, self._slices, self._rows_max, labels)

    def judge(
        self, window: Spanned, parent: Link | None, columns: Sequence[str], writer: ScoreWriter
    ) -> EventJudge | None:
        """The judge of the rows of a window that is opened; None where nothing is judged.

        parent: the link that it is started from. columns: of scores; none for a learner that only
        counts. writer: restored, with what was judged before.
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
