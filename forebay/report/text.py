"""A run's facts: tables on a terminal, elsewhere plain lines that suit `grep` and `cut`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forebay.mixture.metrics.estimate import Estimate
from forebay.report.facts import Facts, PartFacts, WindowFacts
from forebay.system.output.table import TableColumn, table_lines
from forebay.system.output.text import broken, printable


def report_lines(facts: Facts, width: int | None) -> Iterator[str]:
    """Rows and AUCs per window, pooled figures, verdicts, time by phase and paths.

    width: of the terminal; None if it is none.
    """
    return map(printable, plain_lines(facts) if width is None else _terminal_lines(facts, width))


def _terminal_lines(facts: Facts, width: int) -> Iterator[str]:
    for one in (facts, *facts.labels.values()):
        yield from _window_table(one, width)
        if one.paradigms:
            yield from _fresh_table(one, width)
        if one.has_event:
            yield from _event_table(one, width)
        for of, parts in one.parts.items():
            yield from _part_table(of, parts, width)
    for line in closing_lines(facts):
        yield broken(line, width)


def plain_lines(facts: Facts) -> Iterator[str]:
    """Every fact as a line of `word  values`; nothing is wrapped or cut."""
    for window in _all_windows(facts):
        rows = "  ".join(f"{feed} {count}" for feed, count in window.rows.items())
        not_known = f"  label not known {window.not_known}" if window.not_known else ""
        counts = f"{rows}  dead {window.dead}{not_known}"
        yield f"window {window.window}  generation {window.generation}  {counts}"
        yield from _auc_lines(window)
    yield from _part_lines(facts)
    for label, own in facts.labels.items():
        for each in own.windows:
            if each.not_known:
                yield f"label {label}  window {each.window}  label not known {each.not_known}"
            yield from (f"label {label}  {line}" for line in _auc_lines(each))
        yield from (f"label {label}  {line}" for line in _part_lines(own))
    yield from closing_lines(facts)


def _auc_lines(window: WindowFacts) -> Iterator[str]:
    for name in window.auc_true:
        fresh = window.auc_fresh[name]
        yield (
            f"auc {window.window}  {name}  true {true_text(window, name)}  "
            f"fresh {estimate_text(fresh)}"
        )
    for name in window.event:
        yield f"event auc {window.window}  {name}  {event_text(window, name)}"


def _part_lines(facts: Facts) -> Iterator[str]:
    for of, parts in facts.parts.items():
        for part in parts:
            counts = f"rows {part.rows}  positives {part.positives}"
            for name in part.aucs:
                yield f"{of}  {part.value}  {counts}  {name}  {part_text(part, name)}"


def closing_lines(facts: Facts) -> Iterator[str]:
    """The lines below the tables: the whole run, in words."""
    for window in _all_windows(facts):
        yield from (f"note  window {window.window}, {reason}" for reason in window.reasons)
        if window.stale:
            yield f"note  window {window.window} is {window.stale}"
        if window.data_changed:
            yield f"note  window {window.window}: {window.data_changed}"
    yield from (f"note  {note}" for note in facts.notes)
    yield from (f"offset  {words}" for words in facts.offsets)
    if facts.first_label:
        yield f"label  {facts.first_label}: figures that name no label are for this one"
    yield from _verdict_lines(facts)
    yield from _label_lines(facts)
    for label, own in facts.labels.items():
        lines = (*_verdict_lines(own), *_label_lines(own))
        yield from (f"label {label}  {line}" for line in lines)
    yield facts.rows_line
    if facts.restarts:
        yield "restarts  " + ", ".join(f"{role} {n}" for role, n in facts.restarts.items())
    if facts.phases_seconds:
        yield "time  " + ", ".join(
            f"{phase} {seconds:.1f} s" for phase, seconds in facts.phases_seconds.items()
        )
    if facts.model:
        yield f"model  {facts.model}"


def _label_lines(facts: Facts) -> Iterator[str]:
    if facts.positives_known is not None:
        yield f"labels  {share_words(facts.positives_known)}"
    yield from (f"WARNING  {words}" for words in facts.warnings)
    if facts.advice:
        yield f"advice  {facts.advice}"


def _verdict_lines(facts: Facts) -> Iterator[str]:
    for name, labels in facts.pooled.items():
        yield (
            f"pooled  {name}  auc_true {estimate_text(labels['auc_true'])}  "
            f"auc_fresh {estimate_text(labels['auc_fresh'])}"
        )
    for name, event in facts.pooled_event.items():
        yield (
            f"pooled  {name}  event auc {estimate_text(event.auc)}  "
            f"normalised entropy {estimate_text(event.normalised_entropy)}  "
            f"calibration {event.calibration:.2f}"
        )
    judged = "" if facts.label == "complete" else " (fresh labels)"
    judged += " (event scores)" if facts.scored_at == "event" else ""
    yield from (f"verdict  {words}{judged}" for words in facts.differences)
    if facts.gate:
        yield f"gate  {facts.gate}"


def partial_text(window: WindowFacts) -> str:
    """How much of a window is judged while complete labels of its events are still missing."""
    return f"{window.judged:,} of {window.events:,} rows judged"


def share_words(share: float) -> str:
    """How many positives were known in time; never rounded up."""
    return f"{int(100 * share)}% of positives were known when their stream row was published"


def estimate_text(estimate: Estimate | None) -> str:
    """A figure with its interval; `none` if it does not exist."""
    if estimate is None:
        return "none"
    return f"{estimate.value:.3f} ({estimate.low:.3f}-{estimate.high:.3f})"


def true_text(window: WindowFacts, name: str) -> str:
    """AUC on complete labels, or how many of these there are so far; empty if not measured."""
    if name not in window.auc_true:
        return ""
    return window.words_true[name] or estimate_text(window.auc_true[name])


def event_text(window: WindowFacts, name: str) -> str:
    """AUC of event scores, or how much is judged so far; empty if there are none."""
    if name not in window.event:
        return ""
    return window.event_words[name] or estimate_text(window.event[name])


def part_text(part: PartFacts, name: str) -> str:
    """AUC of one source or slice, or why it has none."""
    return part.words or estimate_text(part.aucs[name])


def _all_windows(facts: Facts) -> list[WindowFacts]:
    return [*([facts.warm_start] if facts.warm_start else []), *facts.windows]


def _table(
    title: str,
    counts: Sequence[str],
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    width: int,
) -> Iterator[str]:
    """A title, a table of a text column, counts and figures by name, and an empty line.

    counts: the first column's name, then those of counts, which are moved below their row first.
    """
    first, *others = counts
    table = [
        TableColumn(first),
        *(TableColumn(name, right=True, moves=True) for name in others),
        *(TableColumn(name, right=True) for name in names),
    ]
    cells = [[printable(text) for text in row] for row in rows]
    yield broken(title, width)
    yield ""
    yield from table_lines(table, cells, width)
    yield ""


def _window_table(facts: Facts, width: int) -> Iterator[str]:
    title = f"{facts.pipeline}: rows and AUC on complete labels (95% interval)"
    columns = ["batch", "stream", "dead", *(["label not known"] if facts.has_not_known else [])]
    rows = []
    for window in _all_windows(facts):
        counts = [window.rows["batch"], window.rows["stream"], window.dead, window.not_known]
        shown = [f"{count:,}" for count in counts[: len(columns)]]
        true = [true_text(window, name) for name in facts.paradigms]
        rows.append([window.window, *shown, *true])
    if facts.paradigms:
        pooled = {name: labels["auc_true"] for name, labels in facts.pooled.items()}
        rows.append(["pooled", *[""] * len(columns), *_cells(facts, pooled)])
    yield from _table(title, ["window", *columns], rows, facts.paradigms, width)


def _fresh_table(facts: Facts, width: int) -> Iterator[str]:
    title = "AUC on labels as known at publication (95% interval)"
    rows = []
    for window in facts.windows:
        known = "" if window.positives_known is None else f"{int(100 * window.positives_known)}%"
        rows.append([window.window, known, *_cells(facts, window.auc_fresh)])
    pooled = {name: labels["auc_fresh"] for name, labels in facts.pooled.items()}
    rows.append(["pooled", "", *_cells(facts, pooled)])
    yield from _table(title, ["window", "positives known"], rows, facts.paradigms, width)


def _event_table(facts: Facts, width: int) -> Iterator[str]:
    title = "AUC of event scores, by the newest model at the time (95% interval)"
    rows = [
        [window.window, *(event_text(window, name) for name in facts.paradigms)]
        for window in facts.windows
    ]
    if facts.pooled_event:
        pooled = {name: one.auc for name, one in facts.pooled_event.items()}
        rows.append(["pooled", *_cells(facts, pooled)])
    yield from _table(title, ["window"], rows, facts.paradigms, width)


def _part_table(of: str, parts: Sequence[PartFacts], width: int) -> Iterator[str]:
    names = list(parts[0].aucs)
    rows = [
        [
            part.value,
            f"{part.rows:,}",
            f"{part.positives:,}",
            *(part_text(part, name) for name in names),
        ]
        for part in parts
    ]
    title = f"AUC of event scores by {of} (95% interval)"
    yield from _table(title, [of, "rows", "positives"], rows, names, width)


def _cells(facts: Facts, estimates: Mapping[str, Estimate | None]) -> list[str]:
    return [estimate_text(estimates[name]) if name in estimates else "" for name in facts.paradigms]
