"""The facts of a summary, in a form shared by text, plots and HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forebay.config.specs.datasets import Feed
from forebay.errors import UsageError
from forebay.home.paths import DEFAULT_LINE
from forebay.mixture.left_out import unsaid
from forebay.mixture.metrics.estimate import Estimate
from forebay.system.output.counted import counted

Json = dict[str, Any]


@dataclass(frozen=True)
class Series:
    """What a trainer recorded over the steps of one window: lists of equal length, not empty.

    rows: of the window so far, by source. losses: mean since the previous point, by paradigm and
    feed; None if there was no step.
    """

    steps: list[int]
    lag_seconds: list[float]
    rows: dict[str, list[int]]
    losses: dict[str, list[float | None]]


@dataclass(frozen=True)
class WindowFacts:
    """One window: rows by feed and by source, dead letters, AUCs by paradigm.

    not_known: rows that were not trained on, as their label was not known in time; with several
    labels, those without this one. event: AUCs of its events, scored when they happened; so far
    `judged` of `events` are judged; `partial`: more will be.
    """

    window: str
    generation: int
    stale: str
    data_changed: str
    rows: dict[Feed, int]
    source_rows: dict[str, int]
    dead: int
    not_known: int
    reasons: list[str]
    auc_true: dict[str, Estimate | None]
    auc_fresh: dict[str, Estimate | None]
    words_true: dict[str, str]
    event: dict[str, Estimate | None]
    event_words: dict[str, str]
    judged: int
    events: int
    partial: bool
    positives_known: float | None
    series: Series | None


class Headline(NamedTuple):
    """The figure to read first: the AUC of the variant that answers; None while there is none.

    words: what it is about.
    """

    variant: str
    figure: Estimate | None
    words: str


class EventFacts(NamedTuple):
    """Pooled event scores of one variant or tower. calibration: 1 is ideal."""

    auc: Estimate
    normalised_entropy: Estimate
    calibration: float


class PartFacts(NamedTuple):
    """Pooled event scores of one source, or of one value of a sliced feature.

    aucs: by variant or tower. words: why there are none; empty if there are.
    """

    value: str
    rows: int
    positives: int
    aucs: dict[str, Estimate | None]
    words: str


class CurvePoint(NamedTuple):
    """Rows with similar scores: the mean score, and the share of positives among them."""

    expected: float
    observed: Estimate
    rows: int


class AgePoint(NamedTuple):
    """Positives by the age of their row at publication. until_hours: the maximum age."""

    until_hours: float | None
    fresh: int
    complete: int


@dataclass(frozen=True)
class Facts:
    """Everything that a report shows.

    pooled_event, curves: of event scores, by variant or tower; empty if there are none.
    parts: pooled event scores by what they are divided by: `source`, `slice of category`.
    offsets: of each stream in words, if it has any.
    line: empty for the usual one. serving: which window serves, in words; empty if none does.
    headline: None where nothing is scored.
    first_label: with several labels, the one that all other figures are for; else empty. labels:
    the same facts for each label after it, by name, with everything that does not depend on labels.
    """

    pipeline: str
    line: str
    serving: str
    headline: Headline | None
    paradigms: list[str]
    warm_start: WindowFacts | None
    windows: list[WindowFacts]
    pooled: dict[str, dict[str, Estimate | None]]
    pooled_event: dict[str, EventFacts]
    curves: dict[str, list[CurvePoint]]
    parts: dict[str, list[PartFacts]]
    ages: list[AgePoint]
    scored_at: str
    gate: str
    differences: list[str]
    warnings: list[str]
    advice: str
    label: str
    positives_known: float | None
    rows_agree: bool
    rows_line: str
    phases_seconds: dict[str, float]
    restarts: dict[str, int]
    notes: list[str]
    offsets: list[str]
    model: str
    first_label: str
    labels: dict[str, Facts]

    @property
    def period(self) -> str:
        """Which windows these are."""
        keys = [window.window for window in self.windows]
        if len(keys) < 2:
            return f"window {keys[0]}" if keys else "no windows"
        return f"{len(keys)} windows, {keys[0]} to {keys[-1]}"

    @property
    def has_event(self) -> bool:
        """Whether event scores are kept, even if there are none yet."""
        return any(window.event for window in self.windows)

    @property
    def sources(self) -> list[str]:
        """Every source of the run, in declared order."""
        return list(dict.fromkeys(name for window in self.windows for name in window.source_rows))

    @property
    def has_not_known(self) -> bool:
        """Whether a window has rows whose label was not known in time."""
        first = [] if self.warm_start is None else [self.warm_start]
        return any(window.not_known for window in [*first, *self.windows])


def read_facts(path: Path) -> Facts:
    """Read a summary that `forebay run … --summary FILE` wrote.

    Raises:
        UsageError: when the file is missing or is not such a summary.
    """
    try:
        return facts_of(json.loads(path.read_text()))
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such file; for windows of a pipeline add --from and --to"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UsageError(
            f"{path} is not a summary of `forebay run … --summary FILE` ({error!r})"
        ) from error


def facts_of(summary: Json) -> Facts:
    """Extract the facts of a summary.

    Raises:
        KeyError: when a key that every summary has is missing.
    """
    label = summary.get("own_label") or summary.get("first_label", "")
    windows = [_window(window, label) for window in summary["windows"]]
    pooled = summary.get("pooled") or {}
    event = pooled.get("event") or {}
    warm = summary.get("warm_start")
    return Facts(
        pipeline=summary.get("pipeline", ""),
        line="" if summary.get("line", DEFAULT_LINE) == DEFAULT_LINE else summary["line"],
        serving=_serving(summary.get("published")),
        headline=_headline(summary),
        paradigms=list(
            summary.get("paradigms")
            or dict.fromkeys(name for window in windows for name in window.auc_true)
        ),
        warm_start=_window(warm, label) if warm else None,
        windows=windows,
        pooled={
            name: {label: _estimate(block.get(label)) for label in ("auc_true", "auc_fresh")}
            for name, block in pooled.get("paradigms", {}).items()
        },
        pooled_event={
            name: EventFacts(
                _sure(answer["auc"]), _sure(answer["normalised_entropy"]), answer["calibration"]
            )
            for name, answer in event.get("answers", {}).items()
        },
        curves={
            name: [
                CurvePoint(one["expected"], _sure(one["observed"]), one["rows"])
                for one in answer.get("curve", [])
            ]
            for name, answer in event.get("answers", {}).items()
        },
        parts={of: _parts(values) for of, values in _divided(event) if values},
        ages=[_age(one) for one in pooled.get("label_ages", [])],
        scored_at=pooled.get("scored_at", "publication"),
        gate=(summary.get("gate") or {}).get("words", ""),
        differences=[row["words"] for row in pooled.get("differences", [])],
        warnings=list(pooled.get("warnings", [])),
        advice=(summary.get("advice") or {}).get("words", ""),
        label=pooled.get("label", "complete"),
        positives_known=_known(pooled, summary["windows"]),
        rows_agree=summary["rows_agree"],
        rows_line=summary["rows_line"],
        phases_seconds=dict(summary.get("phases_seconds") or {}),
        restarts={name: n for name, n in (summary.get("restarts") or {}).items() if n},
        notes=list(summary.get("notes") or []),
        offsets=list(summary.get("offset_words") or []),
        model=summary.get("model", ""),
        first_label=summary.get("first_label", ""),
        labels={name: facts_of(_of_label(summary, name)) for name in summary.get("labels", {})},
    )


def _serving(published: Json | None) -> str:
    if published is None:
        return ""
    at = published["published_at"]
    name = f"window {published['window']} (generation {published['generation']})"
    return f"{name}, since {at[:10]} {at[11:16]} UTC"


def _headline(summary: Json) -> Headline | None:
    """The AUC of the variant that answers: of event scores if there are any, over all windows."""
    gate, pooled = summary.get("gate") or {}, summary.get("pooled") or {}
    name = gate.get("variant") or next(iter(summary.get("paradigms") or ()), "")
    if not name:
        return None
    waiting = sum(not (one.get("event") or {}).get("complete", True) for one in summary["windows"])
    left_out = f"; labels of {counted(waiting, 'window')} are not complete yet" if waiting else ""
    event = pooled.get("event") or {}
    if name in event.get("answers", {}):
        rows = f"{event['judged']:,} rows of {counted(event['windows'], 'window')}"
        words = f"scored at the event, {rows}{left_out}"
        return Headline(name, _sure(event["answers"][name]["auc"]), words)
    at_publication = pooled.get("paradigms", {}).get(name, {})
    for key, labels in (("auc_true", "complete labels"), ("auc_fresh", "labels as known then")):
        if at_publication.get(key):
            words = f"scored at publication, by {labels}{left_out}"
            return Headline(name, _sure(at_publication[key]), words)
    return Headline(name, None, f"no window is judged{left_out}")


def _of_label(summary: Json, name: str) -> Json:
    """The summary as if this label, one of those after the first, were the only one."""
    none: Json = {"metrics": {}, "label_completeness": None, "event": None}
    own = summary["labels"][name]
    return {
        **summary,
        "pipeline": f"{summary.get('pipeline', '')}, label {name}",
        "windows": [
            {**window, **none, **window.get("labels", {}).get(name, {})}
            for window in summary["windows"]
        ],
        "pooled": own["pooled"],
        "advice": own["advice"],
        "gate": None,
        "first_label": "",
        "own_label": name,
        "labels": {},
    }


def _window(window: Json, label: str) -> WindowFacts:
    sources: Json = window["sources"]
    rows: dict[Feed, int] = {"batch": 0, "stream": 0}
    for source in sources.values():
        rows[source.get("feed", "batch")] += source["trained_rows"]
    metrics: Json = window.get("metrics") or {}
    event: Json = window.get("event") or {}
    answers: Json = event.get("answers", {})
    return WindowFacts(
        window=window["window"],
        generation=window["generation"],
        stale=window.get("stale") or "",
        data_changed=window.get("data_changed") or "",
        rows=rows,
        source_rows={name: source["trained_rows"] for name, source in sources.items()},
        dead=sum(source["dead_letter_rows"] for source in sources.values()),
        not_known=sum(_not_known(source, label) for source in sources.values()),
        reasons=[
            f"{name}: {source['reason']}"
            for name, source in sources.items()
            if source.get("reason")
        ],
        auc_true={name: _figure(one, "auc_true") for name, one in metrics.items()},
        auc_fresh={name: _figure(one, "auc_fresh") for name, one in metrics.items()},
        judged=event.get("judged", 0),
        events=event.get("rows", 0),
        partial=not event.get("complete", True),
        words_true={name: one.get("words_true", "") for name, one in metrics.items()},
        event={name: _figure(one, "auc") for name, one in answers.items()},
        event_words={name: one["words"] for name, one in answers.items()},
        positives_known=_known(window, [window]),
        series=_series(window.get("series")),
    )


def _known(figures: Json, windows: Sequence[Json]) -> float | None:
    """The share of positives known at publication; None where no stream is read."""
    feeds = {each.get("feed") for window in windows for each in window["sources"].values()}
    share: float | None = (figures.get("label_completeness") or {}).get("share")
    return share if "stream" in feeds else None


def _not_known(source: Json, label: str) -> int:
    return int(source["label_not_known_rows"]) + unsaid(source["learnt_rows"]).get(label, 0)


def _series(value: Json | None) -> Series | None:
    if not value or not value["steps"]:
        return None
    return Series(value["steps"], value["lag_seconds"], value["rows"], value.get("losses", {}))


def _figure(metrics: Json, name: str) -> Estimate | None:
    value, interval = metrics.get(name), metrics.get(f"{name}_interval")
    return None if value is None or interval is None else Estimate(value, *interval)


def _divided(event: Json) -> Iterator[tuple[str, Json]]:
    yield "source", event.get("sources", {})
    for feature, values in event.get("slices", {}).items():
        yield f"slice of {feature}", values


def _parts(values: Json) -> list[PartFacts]:
    """Parts with the most rows first."""
    found = []
    for value, answers in values.items():
        if answers:
            first = next(iter(answers.values()))
            aucs = {name: _estimate(one["auc"]) for name, one in answers.items()}
            words = first.get("words", "")
            found.append(PartFacts(value, first["rows"], first["positives"], aucs, words))
    return sorted(found, key=lambda part: -part.rows)


def _age(value: Json) -> AgePoint:
    until = value["until_seconds"]
    hours = None if until is None else until / 3600
    return AgePoint(hours, value["fresh_positives"], value["complete_positives"])


def _sure(value: Json) -> Estimate:
    return Estimate(value["value"], value["low"], value["high"])


def _estimate(value: Json | None) -> Estimate | None:
    return None if value is None else _sure(value)
