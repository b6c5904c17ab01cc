"""What became of the files of windows since they were planned: some came, changed or went.

A file that comes when its window was planned is *unplanned*: no job of that plan reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.pipelines import PipelineSpec
from forebay.config.source_uses import source_of
from forebay.config.sources import SourceSpec
from forebay.datatasks.ledger import Ledger
from forebay.datatasks.open_source import open_source
from forebay.datatasks.operations import Share, identity_of, shares_of
from forebay.datatasks.plans import SKIPPED, SourcePlan, WindowPlan
from forebay.datatasks.sources.common.base import Scan
from forebay.datatasks.sources.common.plan_cache import PlanCache
from forebay.errors import DataError, ForebayError

_SHOWN = 3
Versions = dict[str, set[str]]


def changes_since(
    root: Path,
    pipeline: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    ledger: Ledger,
    plans: Sequence[WindowPlan],
) -> dict[str, list[str]]:
    """Sentences about windows whose files are not those of their plans, by window.

    One look at each source that is cut by event time: what comes late to a stream is in its next
    window. Nothing is written. A source that cannot be looked at is a sentence too.
    """
    found: dict[str, list[str]] = {}
    by_key = {plan.window: plan for plan in plans}
    windows = sorted(plan.as_window for plan in plans)
    for name, shares in shares_of(pipeline, sources, windows).items():
        alike = [each for each in shares if _is_comparable(each, by_key[each.window.key])]
        spans = [share.span for share in alike if share.span is not None]
        if not spans:
            continue
        cache = PlanCache(ledger.home, only_look=True)
        try:
            with closing(open_source(sources[source_of(name)], root, cache=cache)) as source:
                if not source.bounded:
                    continue
                scan = source.look(spans)
        except ForebayError as error:
            for share in alike:
                text = f"{name} cannot be compared with what was planned: {error}"
                found.setdefault(share.window.key, []).append(text)
            continue
        for index, share in enumerate(alike):
            plan = by_key[share.window.key]
            if scan.fingerprints[index] != plan.sources[name].fingerprint:
                tasks = _of_span(scan, index)
                text = _difference(ledger, plan, name, _versions(tasks))
                found.setdefault(plan.window, []).append(text + _fewer(plan.sources[name], tasks))
    return found


def _is_comparable(share: Share, plan: WindowPlan) -> bool:
    """Whether the plan asked for the same rows as the declaration does now, and looked at them."""
    planned = plan.sources.get(share.source)
    return (
        planned is not None
        and share.span is not None
        and not planned.reason.startswith(SKIPPED)
        and identity_of(planned) == identity_of(share.plan())
    )


def _difference(ledger: Ledger, plan: WindowPlan, source: str, now: Versions) -> str:
    try:
        tasks = ledger.tasks(plan.window, plan.generation)
    except DataError:
        return f"{source}: its data has changed since it was planned (which files is not recorded)"
    then = _versions(tasks.filter(pc.equal(tasks["source"], source)))
    kinds = {
        "new": now.keys() - then.keys(),
        "changed": {path for path in now.keys() & then.keys() if now[path] != then[path]},
        "removed": then.keys() - now.keys(),
    }
    parts = [f"{len(paths)} {kind} ({_some(paths)})" for kind, paths in kinds.items() if paths]
    if not parts:
        return f"{source}: its declaration has changed since it was planned"
    return f"{source}: its files have changed since it was planned: {', '.join(parts)}"


def _fewer(plan: SourcePlan, tasks: pa.Table) -> str:
    """In words, that a window has fewer rows than when it was planned; empty otherwise."""
    counts = tasks["rows"]
    now = None if counts.null_count else int(pc.sum(counts).as_py() or 0)
    if now is None or plan.rows is None or now >= plan.rows:
        return ""
    return f": {now:,} rows now, {plan.rows:,} then"


def _of_span(scan: Scan, index: int) -> pa.Table:
    low, high = np.searchsorted(np.asarray(scan.tasks["span"]), [index, index + 1])
    return scan.tasks.slice(low, high - low)


def _versions(tasks: pa.Table) -> Versions:
    """Versions of the files of some tasks, by path."""
    ranges = pc.list_flatten(tasks["ranges"].combine_chunks())
    pairs = zip(ranges.field("path").to_pylist(), ranges.field("version").to_pylist(), strict=True)
    found: Versions = {}
    for path, version in pairs:
        found.setdefault(path, set()).add(version)
    return found


def _some(paths: Iterable[str]) -> str:
    names = sorted(paths)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
