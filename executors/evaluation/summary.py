"""The summary of a run: rows, metrics, proof and paths, as the JSON that everything else reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import is_warm_start
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.tasks import NO_OFFSETS, OffsetsRead
from forebay.executors.advice.line import advice_on_windows, line_windows
from forebay.executors.advice.repeated_events import repeat_warnings
from forebay.executors.evaluation.row_notes import row_notes
from forebay.executors.evaluation.windows import Evaluation
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, ReadRows, SourceRows, source_rows
from forebay.executors.window_files.steps import read_steps, shown_series
from forebay.home.store.base import Store
from forebay.home.store.open import store_of
from forebay.system.instants import to_us
from forebay.system.output.counted import counted

Json = dict[str, Any]
_SECOND_US = 1_000_000


def achieved_offsets(store: Store, plan: WindowPlan, link: Link) -> Json:
    """The offset of each stream as declared and as its rows had it, by stream.

    Two offsets are measured: of the first row from the start of the window, and of the last row
    from its end. If a stream has rows throughout, both are the declared offset. Times are those
    that cut windows: of the event, or of the publication in a topic or log.

    Returns:
        `offset_seconds`, and `measured_seconds`: the smaller and the larger of the two; None where
        no row has a time.

    Raises:
        DataError: when the file with the steps of the window is damaged.
    """
    times = _times(store, link)
    found: Json = {}
    for name, source in plan.sources.items():
        known = found.setdefault(
            source.stream, {"offset_seconds": source.offset_seconds, "measured_seconds": None}
        )
        if name in times:
            first, last = known.get("times", times[name])
            known["times"] = min(first, times[name][0]), max(last, times[name][1])
    for stream in found.values():
        if "times" in stream:
            first, last = stream.pop("times")
            ends = to_us(plan.start) - first, to_us(plan.end) - last
            stream["measured_seconds"] = [each / _SECOND_US for each in sorted(ends)]
    return found


def _times(store: Store, link: Link) -> Mapping[str, tuple[int, int]]:
    """First and last time of the rows of each source; none once the steps are no longer kept."""
    stored = link.files.get("steps")
    points = [] if stored is None else read_steps(store.path(stored))
    return points[-1].times if points else {}


def offset_words(windows: Iterable[Json]) -> list[str]:
    """`yesterday 24h (measured 23.4h to 24.6h)` for each stream of some windows.

    Empty if no stream has an offset. windows: what `achieved_offsets` found for each; the measured
    figures are the smallest and the largest of all.
    """
    declared: dict[str, int] = {}
    measured: dict[str, list[float]] = {}
    for window in windows:
        for stream, found in window.items():
            declared[stream] = found["offset_seconds"]
            measured.setdefault(stream, []).extend(found["measured_seconds"] or ())
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


def window_facts(plan: WindowPlan, link: Link) -> Json:
    sources: Json = {}
    for name, source in plan.sources.items():
        rows, read = source_rows(source, link), link.read.get(name, ReadRows())
        covered = link.coverage.get(name)
        sources[name] = {
            "data_from": source.data_from.isoformat(),
            "data_to": source.data_to.isoformat(),
            "feed": source.feed,
            "planned_rows": rows.planned,
            "served_rows": rows.served,
            "trained_rows": rows.trained,
            "learnt_rows": link.learnt.get(name, {}),
            "dead_letter_rows": rows.dead,
            "label_not_known_rows": rows.not_known,
            "late_rows": read.late,
            "odd_timestamps": read.odd_timestamps,
            "first_odd": read.first_odd,
            "offsets": source.offsets,
            "planned_offsets": rows.planned_offsets,
            "read_offsets": rows.read_offsets.model_dump(),
            "reason": source.reason,
            "gap": covered.gap.model_dump(mode="json") if covered and covered.gap else None,
        }
    return {
        "window": plan.window,
        "generation": link.generation,
        "parent": link.parent.model_dump() if link.parent else None,
        "resumed_from_step": link.resumed_from_step,
        "resumed_from_runtime": link.resumed_from_runtime,
        "reread_rows": link.reread_rows,
        "steps": link.steps,
        "sources": sources,
    }


def opinion(
    window: str, stale: str | None, data_changed: str | None, evaluation: Evaluation
) -> Json:
    """What may change after the window is trained.

    stale: why its model is stale, see `ModelChain`. data_changed: since its plan, see `Ledger`.
    """
    return {
        "stale": stale,
        "data_changed": data_changed,
        **evaluation.part(window),
        "repeated_events": evaluation.repeated.get(window),
        **({"labels": evaluation.parts(window)} if evaluation.labels else {}),
    }


def build_summary(
    pipeline: PipelineSpec,
    chain: ModelChain,
    links: Sequence[Link],
    plans: Mapping[str, WindowPlan],
    judged: Mapping[str, Json],
    data_changed: Mapping[str, str],
    evaluation: Evaluation,
    facts: Mapping[str, Any],
) -> Json:
    """Everything a report needs, for windows that are all trained.

    links: the newest of each window, in order; that of the line's warm start comes first. plans,
    judged, data_changed: by window; judgements of those links whose plan is forgotten. facts:
    `restarts`, `phases_seconds`, `trained_windows`, `reused_windows`, `storage_calls`, `notes` and
    `published`.
    """
    stale, store = chain.stale_reasons(), store_of(chain.home)
    found: dict[str, Json] = {}
    for link in links:
        key, steps = link.window, link.files.get("steps")
        kept = judged[key] if key in judged else window_facts(plans[key], link)
        if "stream_offsets" not in kept:
            kept = {**kept, "stream_offsets": _offsets(store, chain, plans.get(key), link)}
        now = opinion(key, stale.get(key), data_changed.get(key), evaluation)
        series = None if steps is None else shown_series(store.path(steps))
        found[key] = {**kept, **now, "series": series}
    warm = next((one for key, one in found.items() if is_warm_start(key)), None)
    windows = {key: one for key, one in found.items() if not is_warm_start(key)}
    agree, line = rows_verdict(list(found.values()))
    return {
        "pipeline": pipeline.name,
        "line": chain.line,
        "paradigms": list(pipeline.train.paradigms) if pipeline.model.kind == "towers" else [],
        "windows": list(windows.values()),
        "warm_start": warm,
        "stale_windows": list(stale),
        **_newest_model(chain, links),
        "pooled": evaluation.pooled
        | {"warnings": evaluation.pooled["warnings"] + repeat_warnings(windows.values())},
        **_advised(pipeline, evaluation, line_windows(pipeline, chain) | windows),
        "offset_words": offset_words(window["stream_offsets"] for window in windows.values()),
        "rows_agree": agree,
        "rows_line": line,
        **facts,
        "notes": [*facts.get("notes", ()), *row_notes(found.values())],
    }


def _offsets(store: Store, chain: ModelChain, plan: WindowPlan | None, link: Link) -> Json:
    """See `achieved_offsets`; taken from the judgement once the steps are no longer kept."""
    if plan is not None and "steps" in link.files:
        return achieved_offsets(store, plan, link)
    return dict((chain.judgement(link) or {}).get("stream_offsets", {}))


def _newest_model(chain: ModelChain, links: Sequence[Link]) -> Json:
    if not links:
        return {"seen": {}, "model": ""}
    newest = links[-1]
    model = newest.files.get("saved_model")
    return {
        "seen": {name: sums.model_dump() for name, sums in newest.seen.items()},
        "model": store_of(chain.home).url(model) if model is not None else "",
    }


def _advised(pipeline: PipelineSpec, evaluation: Evaluation, windows: Mapping[str, Json]) -> Json:
    """Advice, for each of several labels too. windows: these, and the newest of the line."""
    labels = {
        name: {"pooled": of.pooled, "advice": _advice(pipeline, windows.values(), name, of.pooled)}
        for name, of in evaluation.labels.items()
    }
    several = {"first_label": next(iter(pipeline.dataset.targets)), "labels": labels}
    advice = _advice(pipeline, windows.values(), "", evaluation.pooled)
    return {"advice": advice, **(several if labels else {})}


def _advice(
    pipeline: PipelineSpec, windows: Collection[Json], label: str, pooled: Json
) -> Json | None:
    measured = pooled["differences"] if pooled["label"] == "complete" else ()
    found = advice_on_windows(pipeline, windows, label, measured)
    return found.as_json() if found else None


def rows_verdict(windows: Sequence[Json]) -> tuple[bool, str]:
    """Whether all counts agree, and the line that says so or names the first that do not."""
    totals = {"planned": 0, "served": 0, "trained": 0, "dead": 0, "not known": 0}
    unknown = 0
    offsets = NO_OFFSETS
    for window in windows:
        for name, source in window["sources"].items():
            rows = SourceRows(
                source["planned_rows"],
                source["served_rows"],
                source["trained_rows"],
                source["dead_letter_rows"],
                source["planned_offsets"],
                OffsetsRead(**source["read_offsets"]),
                source["label_not_known_rows"],
            )
            if not rows.agree:
                return False, rows.difference(window["window"], name)
            unknown += rows.planned is None and rows.planned_offsets is None
            offsets = offsets.plus(rows.read_offsets)
            totals["planned"] += rows.served if rows.planned is None else rows.planned
            totals["served"] += rows.served
            totals["trained"] += rows.trained
            totals["dead"] += rows.dead
            totals["not known"] += rows.not_known
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
