"""What a report shows beside the summary: the figure to read first, and parts by their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from forebay.errors import UsageError
from forebay.executors.evaluation.run_summary import Summary
from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.figures import Pooled, PooledPart, PooledParts
from forebay.system.output.counted import counted


class Headline(NamedTuple):
    """The AUC of the variant that answers; None while there is none. words: what it is about."""

    variant: str
    figure: Estimate | None
    words: str


def headline_of(summary: Summary) -> Headline | None:
    """Over all windows; of event scores if there are any. None where nothing is scored."""
    name = summary.gate.variant if summary.gate else next(iter(summary.paradigms), "")
    if not name:
        return None
    waiting = sum(one.is_partial for one in summary.windows)
    late = f"; labels of {counted(waiting, 'window')} are not complete yet" if waiting else ""
    event, found = summary.pooled.event, summary.pooled.paradigms.get(name)
    if event and name in event.answers:
        rows = f"{event.judged:,} rows of {counted(event.windows, 'window')}"
        return Headline(name, event.answers[name].auc, f"scored at the event, {rows}{late}")
    if found and (found.auc_true or found.auc_fresh):
        labels = "complete labels" if found.auc_true else "labels as known then"
        words = f"scored at publication, by {labels}{late}"
        return Headline(name, found.auc_true or found.auc_fresh, words)
    return Headline(name, None, f"no window is judged{late}")


class Part(NamedTuple):
    """A source, or a value of a sliced feature, with its figures by variant or tower."""

    value: str
    answers: dict[str, PooledPart]

    @property
    def first(self) -> PooledPart:
        return next(iter(self.answers.values()))


def parts_of(pooled: Pooled) -> dict[str, list[Part]]:
    """By what event scores are divided by, `source` or `slice of X`; most rows first."""
    return {
        of: sorted(
            (Part(*each) for each in values.items() if each[1]), key=lambda part: -part.first.rows
        )
        for of, values in _divided(pooled)
        if values
    }


def _divided(pooled: Pooled) -> Iterator[tuple[str, PooledParts]]:
    if pooled.event:
        yield "source", pooled.event.sources
        for feature, values in pooled.event.slices.items():
            yield f"slice of {feature}", values


def read_summary(path: Path) -> Summary:
    """Read a summary that `forebay run … --summary FILE` wrote.

    Raises:
        UsageError: when the file is missing or is not such a summary.
    """
    try:
        return Summary.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{path}: no such file; for windows of a pipeline add --from and --to"
        ) from None
    except (ValidationError, OSError) as error:
        said = repr(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            said = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UsageError(
            f"{path} is not a summary of `forebay run … --summary FILE` ({said})"
        ) from error
