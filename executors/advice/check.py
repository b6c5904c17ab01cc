"""What `forebay check --connect` says about a pipeline's data, at the YAML keys concerned."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from forebay.config.load import Project
from forebay.config.specs.base import format_duration
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.yaml.problems import Problem, Severity
from forebay.errors import ForebayError
from forebay.executors.advice.column_values import crowded_features, time_findings, value_findings
from forebay.executors.advice.line import advised, line_gains, line_windows
from forebay.executors.advice.repeated_events import repeat_words, repeats_of
from forebay.executors.advice.samples import SourceSample, sample_sources
from forebay.executors.advice.twins import Rows, complete_rows, completeness_by_label
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement
from forebay.home.database.format import open_home
from forebay.mixture.advice.completeness import Completeness
from forebay.mixture.advice.recommendation import INCOMPLETE_LABELS, Advice
from forebay.mixture.metrics.share import Share


@dataclass(frozen=True)
class DataCheck:
    """What a sample of a pipeline's data shows: problems and notes, and lines with the figures."""

    problems: list[Problem]
    lines: list[str]


def check_data(project: Project, name: str) -> DataCheck:
    """Sample the sources of a usable pipeline and compare them with what it declares.

    Raises:
        ForebayError: when a source does not answer, or holds data that cannot be read.
    """
    pipeline = project.pipelines[name]
    sampled = sample_sources(pipeline, project.sources, project.root)
    problems = list(_value_problems(project, pipeline, sampled))
    feeds = {each.feed for each in sampled.values() if each.sample.table.num_rows}
    if pipeline.model.kind != "towers" or "stream" not in feeds:
        return DataCheck(problems, [])
    lines: list[str] = []
    windows: Collection[Judgement] = ()
    try:
        windows = _line_windows(pipeline)
    except (ForebayError, OSError) as error:  # declarations and data may be fine all the same
        lines.append(f"advice  {name}: without what line `main` has measured: {error}")
    by_label = completeness_by_label(pipeline.dataset, sampled, project.root)
    for (label, measured), own in zip(by_label.items(), pipeline.dataset.targets, strict=True):
        said = f"{name}, {own}" if own else name
        found = _advice(pipeline, sampled, measured, label, windows)
        lines += [_labels_line(said, source, each) for source, each in measured.items()]
        if found.is_late:
            problems.append(_late_problem(project, pipeline, found, own))
        elif found.recommendation is not None:
            lines.append(f"advice  {said}: {found.recommendation.words}")
    return DataCheck(problems, lines)


def _value_problems(
    project: Project, pipeline: PipelineSpec, sampled: Mapping[str, SourceSample]
) -> Iterator[Problem]:
    of_values = value_findings(pipeline.name, pipeline.dataset, sampled)
    for each in (*of_values, *time_findings(sampled, project.root, datetime.now(UTC))):
        place = project.where(each.folder, each.name, each.path)
        accepted = each.code in pipeline.train.accept
        severity: Severity = "note" if accepted else each.severity
        code = each.code.replace("_", "-")
        yield Problem(*place, code, each.message, severity=severity)
    where = project.where("pipelines", pipeline.name, ("dataset", "event_id"))
    for name, rows in {
        one.spec.name: Rows(one.spec, one.sample.table) for one in sampled.values()
    }.items():
        found = complete_rows(pipeline.dataset, [rows])
        words = repeat_words(f"sampled rows of {name}", repeats_of(found.event_ids, found.labels))
        if words:
            yield Problem(*where, "repeated-events", words, severity="note")
    for feature, (values, buckets) in crowded_features(pipeline.dataset, sampled).items():
        path = ("dataset", "features", feature, "buckets")
        message = (
            f"feature {feature!r}: {values:,} different values in the sample share {buckets:,} "
            "buckets: values that share one look the same to the model; give it more buckets"
        )
        place = project.where("pipelines", pipeline.name, path)
        yield Problem(*place, "crowded-buckets", message, severity="note")


def _advice(
    pipeline: PipelineSpec,
    sampled: Mapping[str, SourceSample],
    measured: Mapping[str, Completeness],
    label: str,
    windows: Collection[Judgement],
) -> Advice:
    """Advice for the stream whose labels are least complete: that one misleads most.

    windows: of a line; what they have measured goes first.
    """
    shares = [each.at_publication for each in measured.values() if each.at_publication is not None]
    known = min(shares, key=lambda share: share.value, default=None)
    return advised(
        *(pipeline, label, known, line_gains(pipeline, windows, label)),
        stream_share=_stream_share(sampled),
        has_batch=any(each.feed == "batch" for each in sampled.values()),
        has_stream=True,
        crowded=bool(crowded_features(pipeline.dataset, sampled)),
    )


def _line_windows(pipeline: PipelineSpec) -> Collection[Judgement]:
    """Judgements of line `main`, if this home has any."""
    return line_windows(pipeline, ModelChain(open_home(), pipeline.name)).values()


def _stream_share(sampled: Mapping[str, SourceSample]) -> float | None:
    """Hourly rows of the streams for each one of the batch sources; None if either is unknown."""
    rates: dict[str, float] = {"batch": 0.0, "stream": 0.0}
    for each in sampled.values():
        if each.rate is None:
            return None
        rates[each.feed] += each.rate
    return min(1.0, rates["stream"] / rates["batch"]) if rates["batch"] else None


def _late_problem(project: Project, pipeline: PipelineSpec, found: Advice, label: str) -> Problem:
    accepted = INCOMPLETE_LABELS in pipeline.train.accept
    said = f"label {label}: " if label else ""
    place = project.where("pipelines", pipeline.name, ("train", "paradigm"))
    way_out = "" if accepted else f"; to train anyway, write `train.accept: [{INCOMPLETE_LABELS}]`"
    severity: Severity = "note" if accepted else "error"
    return Problem(*place, "incomplete-labels", f"{said}{found.words}{way_out}", severity=severity)


def _labels_line(pipeline: str, source: str, found: Completeness) -> str:
    if found.at_publication is None:
        known = "unknown how many positives are known at publication"
        known += f": {found.twins:,} of {found.events:,} sampled events have twins in batch sources"
        known += ", and none of them is positive" if found.twins else ""
    else:
        known = f"{found.at_publication.words} positives are known at publication"
    wait = ""
    if found.wait_seconds is not None:
        wait = f", {_age(found.wait_seconds)} after the event (median)"
    ages = ", ".join(
        f"{_after(each.after_seconds, each.until_seconds)} {_figure(each.share)}"
        for each in found.by_age
    )
    by_age = f"; by age of the label: {ages}" if ages else ""
    taken = f"; {found.taken_back:,} positives were taken back" if found.taken_back else ""
    return f"labels  {pipeline}, {source}: {known}{wait}{by_age}{taken}"


def _after(after: int, until: int) -> str:
    """`1h` for ages up to an hour, `1h-3h` for those between one and three."""
    return f"{_age(after)}-{_age(until)}" if after else _age(until)


def _age(seconds: float) -> str:
    whole = timedelta(minutes=round(seconds / 60))
    return format_duration(whole)


def _figure(share: Share) -> str:
    return f"{100 * share.part // share.whole}%"
