"""What is known of one trained window: the rows of its sources, its figures, and its offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.tasks import NO_OFFSETS
from forebay.executors.evaluation.windows import Evaluation
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.judgement import Judgement, SourceFacts, StreamOffset
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.steps import read_steps
from forebay.home.store.base import Store
from forebay.home.store.open import store_of
from forebay.system.instants import to_us
from forebay.system.output.counted import counted

_SECOND_US = 1_000_000


def achieved_offsets(store: Store, plan: WindowPlan, link: Link) -> dict[str, StreamOffset]:
    """The offset of each stream as declared and as its rows had it, by stream.

    Two offsets are measured: of the first row from the start of the window, and of the last row
    from its end. If a stream has rows throughout, both are the declared offset. Times are those
    that cut windows: of the event, or of the publication in a topic or log.

    measured_seconds: the smaller and the larger of the two; None where no row has a time.

    Raises:
        DataError: when the file with the steps of the window is damaged.
    """
    stored = link.files.get("steps")
    points = [] if stored is None else read_steps(store.path(stored))
    times = points[-1].times if points else {}  # none once the steps are no longer kept
    found: dict[str, StreamOffset] = {}
    for stream in dict.fromkeys(one.stream for one in plan.sources.values()):
        own = {name: one for name, one in plan.sources.items() if one.stream == stream}
        rows = [times[name] for name in own if name in times]
        measured = None
        if rows:
            first, last = min(first for first, _ in rows), max(last for _, last in rows)
            low, high = sorted((to_us(plan.start) - first, to_us(plan.end) - last))
            measured = low / _SECOND_US, high / _SECOND_US
        declared = next(iter(own.values())).offset_seconds
        found[stream] = StreamOffset(offset_seconds=declared, measured_seconds=measured)
    return found


def stream_offsets(chain: ModelChain, plan: WindowPlan, link: Link) -> dict[str, StreamOffset]:
    """See `achieved_offsets`; taken from the judgement once the steps are no longer kept."""
    if "steps" in link.files:
        return achieved_offsets(store_of(chain.home), plan, link)
    judgement = chain.judgement(link)
    return judgement.stream_offsets if judgement else {}


def offset_words(windows: Iterable[Mapping[str, StreamOffset]]) -> list[str]:
    """`yesterday 24h (measured 23.4h to 24.6h)` for each stream of some windows.

    Empty if no stream has an offset. windows: what `achieved_offsets` found for each; the measured
    figures are the smallest and the largest of all.
    """
    declared: dict[str, int] = {}
    measured: dict[str, list[float]] = {}
    for window in windows:
        for stream, found in window.items():
            declared[stream] = found.offset_seconds
            measured.setdefault(stream, []).extend(found.measured_seconds or ())
    if not any(declared.values()):
        return []
    return [
        f"{stream} {_hours(seconds)} ({_range(measured[stream])})"
        for stream, seconds in declared.items()
    ]


def _range(seconds: list[float]) -> str:
    if not seconds:
        return "not measured"
    low, high = _hours(min(seconds)), _hours(max(seconds))
    return f"measured {low}" if low == high else f"measured {low} to {high}"


def _hours(seconds: float) -> str:
    text = f"{seconds / 3600:.1f}".removesuffix(".0")
    return "0h" if text == "-0" else f"{text}h"


def window_facts(chain: ModelChain, plan: WindowPlan, link: Link) -> Judgement:
    return Judgement(
        window=plan.window,
        generation=link.generation,
        parent=link.parent,
        resumed_from_step=link.resumed_from_step,
        resumed_from_runtime=link.resumed_from_runtime,
        reread_rows=link.reread_rows,
        steps=link.steps,
        sources={name: SourceFacts.of(source, link) for name, source in plan.sources.items()},
        stream_offsets=stream_offsets(chain, plan, link),
    )


def opinion(
    facts: Judgement, stale: str | None, data_changed: str | None, evaluation: Evaluation
) -> Judgement:
    """The facts of a window with what may change after it is trained.

    stale: why its model is stale, see `ModelChain`. data_changed: since its plan, see `Ledger`.
    """
    repeated = evaluation.repeated.get(facts.window)
    now = {"stale": stale, "data_changed": data_changed, "repeated_events": repeated}
    return evaluation.of(facts).model_copy(update=now)


def rows_verdict(windows: Iterable[Judgement]) -> tuple[bool, str]:
    """Whether all counts agree, and the line that says so or names the first that do not."""
    totals = Counter[str]()
    unknown = 0
    offsets = NO_OFFSETS
    for window in windows:
        for name, source in window.sources.items():
            if not source.agree:
                return False, source.difference(window.window, name)
            planned = source.planned_rows
            unknown += planned is None and source.planned_offsets is None
            offsets = offsets.plus(source.read_offsets)
            totals["planned"] += source.served_rows if planned is None else planned
            totals["served"] += source.served_rows
            totals["trained"] += source.trained_rows
            totals["dead"] += source.dead_letter_rows
            totals["not known"] += source.label_not_known_rows
    parts = ["trained", "dead", *(["not known"] if totals["not known"] else [])]
    line = (
        f"rows  planned = served = {' + '.join(parts)}; the model's own sums agree  "
        f"({totals['planned']:,} = {totals['served']:,} = "
        f"{' + '.join(f'{totals[part]:,}' for part in parts)})"
    )
    if offsets.total:
        line += f"; {offsets.total:,} planned offsets = {offsets.text}"
    if unknown:
        line += f"; {counted(unknown, 'plan')} could not count rows in advance: counted as served"
    return True, line


def judged(window: Judgement, *before: Judgement) -> Judgement:
    """With the verdict on its rows, and on those of the windows before that it is judged with."""
    agree, line = rows_verdict([*before, window])
    return window.model_copy(update={"rows_agree": agree, "rows_line": line})
