"""Metrics of trained windows, from the stored scores and the labels that arrived since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from itertools import combinations

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import Interval
from forebay.errors import DataError
from forebay.executors.advice.line import corrected_as, known_share
from forebay.executors.advice.repeated_events import repeated_events
from forebay.executors.evaluation.scoreboard import (
    Scored,
    label_ages,
    label_completeness,
    pooled_aucs,
    score_windows,
    window_metrics,
)
from forebay.executors.judging.event_figures import EventFigures, pooled_event
from forebay.executors.judging.event_rows import EventSpan, event_rows
from forebay.executors.judging.evidence.gate_evidence import counted_windows
from forebay.executors.judging.serving_gate import segments_of
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement, Repeats
from forebay.executors.model_line.link import Link
from forebay.home.store.open import store_of
from forebay.mixture.metrics.auc import AucEstimate, pool
from forebay.mixture.metrics.figures import Difference, LabelPart, Pooled, PooledScores
from forebay.mixture.metrics.verdict import completeness_words, difference_words, doubtful_words
from forebay.mixture.score_columns import over_seeds
from forebay.system.instants import to_us


def summarise_scores(
    boards: Sequence[Scored],
    events: Sequence[EventFigures] = (),
    corrected: Mapping[str, str] | None = None,
) -> Pooled:
    """Pooled figures, paired differences, verdicts in words.

    Differences are between event scores if there are any; otherwise between scores at publication,
    by complete labels if any are known, or by fresh ones: `scored_at` and `label` say which. While
    complete labels are still to come, fresh ones decide nothing: the variant that fits these best
    would look better than one that corrects them. corrected: names of the variants for the label,
    if it has its own correction.
    """
    columns, fresh, true = pooled_aucs(boards)
    judged = [board for board in boards if board.all_here] or boards
    known = known_share(label_completeness([one]) for one in judged)
    answers = over_seeds(columns)
    names = [column.variant for column in answers if not column.tower]
    variants = [(corrected or {}).get(name, name) for name in names]
    warning = completeness_words(variants, known)
    counted = counted_windows(events)
    event, pooled = pool(one.auc for one in counted), pooled_event(events)
    waits = any(not board.all_here and not board.joined.all() for board in boards)
    return Pooled(
        paradigms={
            column.name: PooledScores(
                auc_fresh=fresh.interval(places) if fresh else None,
                auc_true=true.interval(places) if true else None,
            )
            for column, places in answers.items()
        },
        event=pooled,
        scored_at="event" if event else "publication",
        label="complete" if event or true else "fresh",
        differences=_differences(counted[0].columns, event)
        if event
        else _differences(columns, true or (None if waits else fresh)),
        label_completeness=label_completeness(judged),
        label_ages=label_ages(boards),
        warnings=[*([warning] if warning else []), *doubtful_words(pooled.answers)],
    )


def _differences(columns: Sequence[str], auc: AucEstimate | None) -> list[Difference]:
    """Between every two variants, seed by seed; towers that do not answer are not compared."""
    if auc is None:
        return []
    answers = [(one.name, places) for one, places in over_seeds(columns).items() if not one.tower]
    rows = []
    for (a, first), (b, second) in combinations(answers, 2):
        found = auc.difference(first, second)
        words = difference_words(a, b, found)
        rows.append(Difference(a=a, b=b, **asdict(found), differ=found.is_clear(), words=words))
    return rows


# A trainer or forebay gc may remove scores while they are read, once for each trained window.
_LOOKS_MAX = 5


@dataclass(frozen=True)
class Evaluation:
    """What is known of windows, by key, by the only label or the first; and the pooled figures.

    notes: for people, on what the figures leave out. repeated: see `repeated_events`, by window.
    labels: the same of each label after the first, by name.
    """

    windows: dict[str, LabelPart]
    pooled: Pooled
    notes: list[str] = field(default_factory=list)
    repeated: dict[str, dict[str, Repeats] | None] = field(default_factory=dict)
    labels: dict[str, Evaluation] = field(default_factory=dict)

    def of(self, facts: Judgement) -> Judgement:
        """A window's facts with its figures."""
        part = self.windows.get(facts.window, LabelPart())
        labels = {n: of.windows.get(facts.window, LabelPart()) for n, of in self.labels.items()}
        return facts.by_label(part).model_copy(update={"labels": labels} if labels else {})


def evaluate(pipeline: PipelineSpec, chain: ModelChain, links: Sequence[Link]) -> Evaluation:
    """Judge links, given in order; labels of later windows count too.

    For a link whose scores are no longer kept, the figures are those of its judgement.

    Raises:
        DataError: when scores that are kept are missing or damaged.
    """
    for _ in range(_LOOKS_MAX - 1):
        try:
            return _of_every_label(pipeline, chain, links)
        except DataError:
            known = {link.name: link for link in chain.links()}
            now = [known.get(link.name, link) for link in links]
            if now == links:
                raise
            links = now  # scores were removed while they were read: their judgements are stored
    return _of_every_label(pipeline, chain, links)


def _of_every_label(pipeline: PipelineSpec, chain: ModelChain, links: Sequence[Link]) -> Evaluation:
    names = pipeline.dataset.further_labels
    others = {name: _evaluate(pipeline, chain, links, name) for name in names}
    return replace(_evaluate(pipeline, chain, links, ""), labels=others)


def _evaluate(
    pipeline: PipelineSpec, chain: ModelChain, links: Sequence[Link], label: str
) -> Evaluation:
    """label: whose figures, see `Segments`."""
    wanted = {link.window for link in links}
    horizon = pipeline.dataset.label_horizon  # no label comes from windows after that
    trained = _with_labels(chain, links, horizon)
    segments = [segments_of(store_of(chain.home), link, label) for link in trained]
    columns = pipeline.train.paradigms if pipeline.model.kind == "towers" else []
    delay = pipeline.dataset.label_delay
    here = {link.window for link in trained if trained[-1].end >= link.end + delay}
    boards: list[Scored] = [
        replace(board, all_here=board.window in here)
        for board in score_windows(segments, columns, horizon)
        if board.window in wanted
    ]
    spans = [
        EventSpan(link.window, to_us(link.start), to_us(link.end), each)
        for link, each in zip(trained, segments, strict=True)
    ]
    stored = chain.judgements([link for link in links if not link.has_scores])
    figures = {
        rows.window: EventFigures.of(rows, pipeline)
        for rows in event_rows(spans, horizon, delay // timedelta(microseconds=1), columns)
        if rows.window in wanted and rows.window not in stored
    }
    found = {
        board.window: LabelPart(
            metrics=window_metrics(board),
            label_completeness=label_completeness([board]),
            event=figures[board.window].block if board.window in figures else None,
        )
        for board in boards
    }
    repeated: dict[str, dict[str, Repeats] | None] = {
        one.window: repeated_events(one) for one in segments if one.window in wanted
    }
    for key, each in stored.items():
        repeated[key] = each.repeated_events
        if not label or label in each.labels:
            found[key] = each.part(label)
    return Evaluation(
        windows=found,
        pooled=summarise_scores(
            [board for board in boards if board.window not in stored],
            list(figures.values()),
            corrected_as(pipeline, label),
        ),
        notes=[_NOT_KEPT.format(len(stored))] if stored else [],
        repeated=repeated,
    )


_NOT_KEPT = (
    "windows whose scores are no longer kept (job.windows_kept): {}; their figures are from their "
    "stored judgements and are not part of the pooled ones"
)


def _with_labels(chain: ModelChain, links: Sequence[Link], horizon: int) -> list[Link]:
    if not links:
        return []
    within = chain.between(links[0], links[-1]) if len(links) > 1 else links
    return [*within, *chain.after(links[-1], horizon)]


# A judgement is stored when its window is trained. While complete labels are still to come with
# later windows, its figures are partial and marked so. They are recomputed and stored when the last
# of these windows is judged, so that no figure stays partial.


def complete_judgements(
    pipeline: PipelineSpec, chain: ModelChain, first: Link, last: Link
) -> dict[str, Judgement]:
    """Complete stored judgements whose last labels came with a range of windows; the new ones.

    first, last: of the windows that were trained or judged now.

    Raises:
        DataError: see `evaluate`.
    """
    dataset = pipeline.dataset
    if not dataset.label_delay:
        return {}  # no label comes later than its window
    since = first.start - (dataset.label_horizon + 1) * (first.end - first.start)
    known = chain.between(Interval(since, since), last)
    to = last.end - dataset.label_delay
    whole = [one for one in known if one.end <= to and one.has_scores]
    stored = chain.judgements(whole)
    waiting = [one for one in whole if one.window in stored and _waits(stored[one.window])]
    if not waiting:
        return {}
    found = evaluate(pipeline, chain, waiting)
    completed = {one.window: found.of(stored[one.window]) for one in waiting}
    chain.judge_all([(one.name, completed[one.window]) for one in waiting])
    return completed


def _waits(judgement: Judgement) -> bool:
    return judgement.event is None or judgement.is_partial
