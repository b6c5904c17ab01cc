"""A run's summary: tables on a terminal, elsewhere plain lines that suit `grep` and `cut`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forebay.executors.evaluation.run_summary import Summary
from forebay.executors.model_line.judgement import Judgement
from forebay.mixture.metrics.estimate import Estimate
from forebay.mixture.metrics.figures import PooledPart
from forebay.report.facts import Part, parts_of
from forebay.system.output.table import TableColumn, table_lines
from forebay.system.output.text import broken, printable


def report_lines(summary: Summary, width: int | None) -> Iterator[str]:
    """Rows and AUCs per window, pooled figures, verdicts, time by phase and paths.

    width: of the terminal; None if it is none.
    """
    return map(
        printable, plain_lines(summary) if width is None else _terminal_lines(summary, width)
    )


def _terminal_lines(summary: Summary, width: int) -> Iterator[str]:
    for one in (summary, *summary.by_label.values()):
        yield from _window_table(one, width)
        if one.paradigms:
            yield from _fresh_table(one, width)
        if one.has_event:
            yield from _event_table(one, width)
        for of, parts in parts_of(one.pooled).items():
            yield from _part_table(of, parts, width)
    for line in closing_lines(summary):
        yield broken(line, width)


def plain_lines(summary: Summary) -> Iterator[str]:
    """Every fact as a line of `word  values`; nothing is wrapped or cut."""
    for window in summary.all_windows:
        rows = "  ".join(f"{feed} {count}" for feed, count in window.rows.items())
        left_out = summary.not_known(window)
        not_known = f"  label not known {left_out}" if left_out else ""
        counts = f"{rows}  dead {window.dead}{not_known}"
        yield f"window {window.window}  generation {window.generation}  {counts}"
        yield from _auc_lines(window)
    yield from _part_lines(summary)
    for label, own in summary.by_label.items():
        for each in own.windows:
            if own.not_known(each):
                yield f"label {label}  window {each.window}  label not known {own.not_known(each)}"
            yield from (f"label {label}  {line}" for line in _auc_lines(each))
        yield from (f"label {label}  {line}" for line in _part_lines(own))
    yield from closing_lines(summary)


def _auc_lines(window: Judgement) -> Iterator[str]:
    for name in window.metrics:
        yield (
            f"auc {window.window}  {name}  true {true_text(window, name)}  "
            f"fresh {fresh_text(window, name)}"
        )
    for name in window.answers:
        yield f"event auc {window.window}  {name}  {event_text(window, name)}"


def _part_lines(summary: Summary) -> Iterator[str]:
    for of, parts in parts_of(summary.pooled).items():
        for part in parts:
            counts = f"rows {part.first.rows}  positives {part.first.positives}"
            for name, figures in part.answers.items():
                yield f"{of}  {part.value}  {counts}  {name}  {part_text(figures)}"


def closing_lines(summary: Summary) -> Iterator[str]:
    """The lines below the tables: the whole run, in words."""
    for window in summary.all_windows:
        yield from (f"note  window {window.window}{note}" for note in _window_notes(window))
    yield from (f"note  {note}" for note in summary.notes)
    yield from (f"offset  {words}" for words in summary.offset_words)
    if summary.first_label:
        yield f"label  {summary.first_label}: figures that name no label are for this one"
    yield from _verdict_lines(summary)
    yield from _label_lines(summary)
    for label, own in summary.by_label.items():
        lines = (*_verdict_lines(own), *_label_lines(own))
        yield from (f"label {label}  {line}" for line in lines)
    yield summary.rows_line
    if summary.restarted:
        yield "restarts  " + ", ".join(f"{role} {n}" for role, n in summary.restarted.items())
    if summary.phases_seconds:
        yield "time  " + ", ".join(
            f"{phase} {seconds:.1f} s" for phase, seconds in summary.phases_seconds.items()
        )
    if summary.model:
        yield f"model  {summary.model}"


def _window_notes(window: Judgement) -> Iterator[str]:
    for name, source in window.sources.items():
        if source.reason:
            yield f", {name}: {source.reason}"
    if window.stale:
        yield f" is {window.stale}"
    if window.data_changed:
        yield f": {window.data_changed}"


def _label_lines(summary: Summary) -> Iterator[str]:
    if summary.positives_known is not None:
        yield f"labels  {share_words(summary.positives_known)}"
    yield from (f"WARNING  {words}" for words in summary.pooled.warnings)
    if summary.advice:
        yield f"advice  {summary.advice.words}"


def _verdict_lines(summary: Summary) -> Iterator[str]:
    pooled = summary.pooled
    for name, figures in pooled.paradigms.items():
        yield (
            f"pooled  {name}  auc_true {estimate_text(figures.auc_true)}  "
            f"auc_fresh {estimate_text(figures.auc_fresh)}"
        )
    for name, event in pooled.answers.items():
        yield (
            f"pooled  {name}  event auc {estimate_text(event.auc)}  "
            f"normalised entropy {estimate_text(event.normalised_entropy)}  "
            f"calibration {event.calibration:.2f}"
        )
    judged = "" if pooled.label == "complete" else " (fresh labels)"
    judged += " (event scores)" if pooled.scored_at == "event" else ""
    yield from (f"verdict  {found.words}{judged}" for found in pooled.differences)
    if summary.gate:
        yield f"gate  {summary.gate.words}"


def share_words(share: float) -> str:
    """How many positives were known in time; never rounded up."""
    return f"{int(100 * share)}% of positives were known when their stream row was published"


def estimate_text(estimate: Estimate | None) -> str:
    """A figure with its interval; `none` if it does not exist."""
    if estimate is None:
        return "none"
    return f"{estimate.value:.3f} ({estimate.low:.3f}-{estimate.high:.3f})"


def true_text(window: Judgement, name: str) -> str:
    """AUC on complete labels, or how many of these there are so far; empty if not measured."""
    found = window.metrics.get(name)
    return "" if found is None else found.words_true or estimate_text(found.true)


def fresh_text(window: Judgement, name: str) -> str:
    """AUC on labels as known at publication; empty if not measured."""
    return estimate_text(window.metrics[name].fresh) if name in window.metrics else ""


def event_text(window: Judgement, name: str) -> str:
    """AUC of event scores, or how much is judged so far; empty if there are none."""
    found = window.answers.get(name)
    return "" if found is None else found.words or estimate_text(found.estimate)


def part_text(part: PooledPart) -> str:
    """AUC of one source or slice, or why it has none."""
    return part.words or estimate_text(part.auc)


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


def _window_table(summary: Summary, width: int) -> Iterator[str]:
    title = f"{summary.pipeline}: rows and AUC on complete labels (95% interval)"
    columns = ["batch", "stream", "dead", *(["label not known"] if summary.has_not_known else [])]
    rows = []
    for window in summary.all_windows:
        counts = [*window.rows.values(), window.dead, summary.not_known(window)]
        shown = [f"{count:,}" for count in counts[: len(columns)]]
        true = [true_text(window, name) for name in summary.paradigms]
        rows.append([window.window, *shown, *true])
    if summary.paradigms:
        pooled = {name: each.auc_true for name, each in summary.pooled.paradigms.items()}
        rows.append(["pooled", *[""] * len(columns), *_cells(summary, pooled)])
    yield from _table(title, ["window", *columns], rows, summary.paradigms, width)


def _fresh_table(summary: Summary, width: int) -> Iterator[str]:
    title = "AUC on labels as known at publication (95% interval)"
    rows = []
    for window in summary.windows:
        known = "" if window.positives_known is None else f"{int(100 * window.positives_known)}%"
        rows.append(
            [window.window, known, *(fresh_text(window, name) for name in summary.paradigms)]
        )
    pooled = {name: figures.auc_fresh for name, figures in summary.pooled.paradigms.items()}
    rows.append(["pooled", "", *_cells(summary, pooled)])
    yield from _table(title, ["window", "positives known"], rows, summary.paradigms, width)


def _event_table(summary: Summary, width: int) -> Iterator[str]:
    title = "AUC of event scores, by the newest model at the time (95% interval)"
    rows = [
        [window.window, *(event_text(window, name) for name in summary.paradigms)]
        for window in summary.windows
    ]
    if summary.pooled.answers:
        pooled = {name: one.auc for name, one in summary.pooled.answers.items()}
        rows.append(["pooled", *_cells(summary, pooled)])
    yield from _table(title, ["window"], rows, summary.paradigms, width)


def _part_table(of: str, parts: Sequence[Part], width: int) -> Iterator[str]:
    names = list(parts[0].answers)
    rows = [
        [
            part.value,
            f"{part.first.rows:,}",
            f"{part.first.positives:,}",
            *map(part_text, part.answers.values()),
        ]
        for part in parts
    ]
    title = f"AUC of event scores by {of} (95% interval)"
    yield from _table(title, [of, "rows", "positives"], rows, names, width)


def _cells(summary: Summary, found: Mapping[str, Estimate | None]) -> list[str]:
    return [estimate_text(found[name]) if name in found else "" for name in summary.paradigms]
