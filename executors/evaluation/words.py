"""What judgements say in words: notes on the rows of windows, and figures of their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime

from forebay.datatasks.plans.plan import NO_ROWS, SKIPPED
from forebay.executors.model_line.judgement import Judgement, SourceFacts
from forebay.executors.model_line.link import Link
from forebay.mixture.left_out import NOT_KNOWN, PAUSED, unsaid
from forebay.mixture.metrics.figures import EventScores, LabelPart, PublicationScores
from forebay.system.output.counted import counted


def row_notes(windows: Collection[Judgement]) -> list[str]:
    """Notes on rows outside their window, rows that are not trained on, and silent windows."""
    return [
        *_missing_notes(windows),
        *_outside_notes(windows),
        *_not_known_notes(windows),
        *_unsaid_notes(windows),
        *_unjudged_notes(windows),
        *_left_out_notes(windows),
        *_idle_notes(windows),
        *_silent_notes(windows),
    ]


def _sources(windows: Collection[Judgement]) -> Iterator[tuple[str, str, SourceFacts]]:
    """Each source of each window: the window's key, the source's name, and its facts."""
    for window in windows:
        for name, source in window.sources.items():
            yield window.window, name, source


def _not_known_notes(windows: Collection[Judgement]) -> Iterator[str]:
    left_out, served = Counter[str](), Counter[str]()
    for _, name, source in _sources(windows):
        if rows := source.label_not_known_rows:
            left_out[name] += rows
            served[name] += source.served_rows
    for name, rows in left_out.items():
        yield (
            f"source {name}: {rows:,} of {served[name]:,} rows of such windows were not trained "
            "on: their label was not known when the window ended (known_at); a larger offset of "
            "their stream gives labels more time"
        )


def _unsaid_notes(windows: Collection[Judgement]) -> Iterator[str]:
    missing, rows = Counter[tuple[str, str]](), Counter[str]()
    for _, name, source in _sources(windows):
        found = unsaid(source.learnt_rows)
        missing.update({(name, label): count for label, count in found.items()})
        if found:
            rows[name] += source.trained_rows
    for (name, label), count in missing.items():
        yield (
            f"source {name}: label {label} was null, or not known when the window ended, in "
            f"{count:,} of {rows[name]:,} rows: these were trained on only for other labels"
        )


def _left_out_notes(windows: Collection[Judgement]) -> Iterator[str]:
    for window, name, source in _sources(windows):
        held = {
            variant.removesuffix(PAUSED): rows
            for variant, rows in source.learnt_rows.items()
            if variant.endswith(PAUSED) and rows
        }
        if held:
            yield (
                f"window {window}, source {name}: {', '.join(held)} did not train on "
                f"{counted(max(held.values()), 'row')}: far fewer were positive than their "
                "features suggest, as if labels had stopped coming (train.guard). While every "
                "source of the stream was paused, scores came from the memory tower alone"
            )


def _unjudged_notes(windows: Collection[Judgement]) -> Iterator[str]:
    gone = sum(window.event.unjudged.gone for window in windows if window.event)
    if gone:
        yield (
            f"no event score for {counted(gone, 'row')}: the checkpoint of the model that would "
            "have scored them is no longer kept (job.checkpoint.windows_kept)"
        )


def _missing_notes(windows: Collection[Judgement]) -> Iterator[str]:
    for window, name, source in _sources(windows):
        place, gap = f"window {window}, source {name}", source.gap
        if gap is not None:
            yield (
                f"{place}: rows of {_utc(gap.start)} to {_utc(gap.end)} are not trained on "
                f"({gap.reason}): the source declares that it begins later"
            )
        if source.reason.startswith(SKIPPED):
            yield f"{place}: trained without it ({source.reason})"


def _utc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _outside_notes(windows: Collection[Judgement]) -> Iterator[str]:
    for window, name, source in _sources(windows):
        place = f"window {window}, source {name}"
        late, odd = source.late_rows, source.odd_timestamps
        if late:
            yield (
                f"{place}: {counted(late, 'row')} from before the window arrived only after the "
                "previous window had closed"
            )
        if odd:
            side = "after the window"
            if not source.offsets:  # of files
                side = "outside of the window, contrary to the metadata of their files"
            first = source.first_odd
            yield f"{place}: {counted(odd, 'row')} with a time {side}; the first is {first}"


def _idle_notes(windows: Collection[Judgement]) -> Iterator[str]:
    rows = Counter[str]()
    for _, name, source in _sources(windows):
        learnt = source.learnt_rows
        # A delay head is trained on batch rows, whatever its variant is trained on.
        heads = any("+head" in variant for variant in learnt)
        taken = [count for by, count in learnt.items() if not by.endswith(NOT_KNOWN)]
        if learnt and not heads and not any(taken):
            rows[name] += source.trained_rows
    for name, count in rows.items():
        if count:
            yield f"source {name}: {counted(count, 'row')} that no paradigm trains on"


def _silent_notes(windows: Collection[Judgement]) -> Iterator[str]:
    silent: dict[str, list[str]] = {}
    for window, name, source in _sources(windows):
        if source.reason == NO_ROWS:
            silent.setdefault(name, []).append(window)
    for name, keys in silent.items():
        yield f"source {name}: no rows in {counted(len(keys), 'window')}, the first is {keys[0]}"


def not_known_text(link: Link) -> str:
    """Rows that were left out because their label came late; an empty text when there are none."""
    left_out = [
        f"{name} {read.label_not_known:,} of {read.rows:,}"
        for name, read in link.read.items()
        if read.label_not_known
    ]
    said = ""
    if left_out:
        shown = ", ".join(left_out)
        said = f"; rows not trained on because their label was not known in time: {shown}"
    for label, rows_of in unsaid_rows(link).items():
        shown = ", ".join(
            f"{name} {n:,} of {link.trained(name).rows:,}" for name, n in rows_of.items()
        )
        said += f"; rows not trained on for label {label}, null or not known in time: {shown}"
    return said


def unsaid_rows(link: Link) -> dict[str, dict[str, int]]:
    """Rows that were trained on only for other labels, by label and source."""
    found: dict[str, dict[str, int]] = {}
    for source, learnt in link.learnt.items():
        for label, rows in unsaid(learnt).items():
            found.setdefault(label, {})[source] = rows
    return found


def event_answers(judgement: Judgement) -> dict[str, EventScores]:
    """Figures by variant or tower; for labels after the first, the keys are as `sale:mixture`."""
    return {f"{of}{n}": each for of, part in _parts(judgement) for n, each in part.answers.items()}


def all_metrics(judgement: Judgement) -> dict[str, PublicationScores]:
    """Figures of scores at publication, with keys as in `event_answers`."""
    return {f"{of}{n}": each for of, part in _parts(judgement) for n, each in part.metrics.items()}


def _parts(judgement: Judgement) -> list[tuple[str, LabelPart]]:
    return [("", judgement), *((f"{label}:", own) for label, own in judgement.labels.items())]


def evaluation_words(judgement: Judgement) -> list[str]:
    """A line for each AUC of each variant, with its rows: that of the first at events comes last.

    At publication it is by complete labels, and as long as more may come, by those known then.
    """
    found = [f"event AUC of {words}" for words in event_words(judgement)]
    for name, each in all_metrics(judgement).items():
        if "/" in name:
            continue  # a tower, which does not answer
        by_complete = each.words_true
        if not by_complete and each.auc_true is not None:
            by_complete = f"{each.auc_true:.3f}, {each.joined_rows:,} rows judged"
        if by_complete:
            found.append(f"AUC of {name} at publication {by_complete}")
        if each.auc_fresh is not None and (each.words_true or not by_complete):
            figure = f"{each.auc_fresh:.3f}{' so far' if by_complete else ''}"
            rows = f"{each.rows:,} rows, by labels as known then"
            found.append(f"AUC of {name} at publication {figure}, {rows}")
    return found[::-1]


def event_words(judgement: Judgement) -> Iterator[str]:
    """A sentence for each variant: its AUC, or how much of it is judged so far."""
    for name, each in event_answers(judgement).items():
        if "/" not in name:
            yield f"{name} {each.words or f'{each.auc:.3f}, {each.rows:,} rows judged'}"
