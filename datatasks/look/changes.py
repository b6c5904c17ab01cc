"""What became of the files of windows since they were planned: some came, changed or went.

A file that comes when its window was planned is *unplanned*: no job of that plan reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.datasets import source_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.planning.operations import Share, identity_of, shares_of, span_tasks
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import SKIPPED, WindowPlan
from forebay.datatasks.sources.common.contract.base import SourcePlanner
from forebay.datatasks.sources.common.contract.deleted_rows import RowsDeletedError
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.errors import DataError, ForebayError
from forebay.system.output.counted import counted

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
        texts: dict[str, str] = {}
        try:
            with closing(open_source(sources[source_of(name)], root, cache=cache)) as source:
                if source.bounded:
                    plans_of = [by_key[share.window.key] for share in alike]
                    texts = _texts(source, spans, ledger, plans_of, name)
        except ForebayError as error:
            text = f"{name} cannot be compared with what was planned: {error}"
            texts = {share.window.key: text for share in alike}
        for window, text in texts.items():
            found.setdefault(window, []).append(text)
    return found


def deleted_since(
    root: Path,
    pipeline: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    ledger: Ledger,
    plans: Sequence[WindowPlan],
) -> list[str]:
    """Notes on windows whose rows a stream no longer has: nothing has to be done, nothing can be.

    And on streams that cannot tell.
    """
    found = []
    by_key = {plan.window: plan for plan in plans}
    windows = sorted(plan.as_window for plan in plans)
    for use, shares in shares_of(pipeline, sources, windows).items():
        spec = sources[source_of(use)]
        alike = [
            share
            for share in shares
            if _is_comparable(share, plan := by_key[share.window.key])
            and not plan.sources[use].reason.startswith(SKIPPED)
        ]
        if not alike or kind_named(spec.kind).bounded:
            continue
        borders = DecidedBorders(ledger.database, pipeline.name, spec.name, only_look=True)
        try:
            with closing(open_source(spec, root, borders)) as source:
                source.scan([share.span for share in alike if share.span is not None])
        except RowsDeletedError as error:
            gone = [share.window.key for share in alike if share.span in error.reasons]
            which = gone[0] if len(gone) == 1 else f"{gone[0]} to {gone[-1]}"
            found.append(
                f"window{'s' * (len(gone) > 1)} {which}: rows of source {use!r} have been "
                "deleted since training: plans and models stay, but --reprocess cannot read "
                "these rows again"
            )
        except ForebayError as error:
            found.append(f"source {use!r} cannot be compared with what was planned: {error}")
    return found


def _texts(
    source: SourcePlanner,
    spans: Sequence[Interval],
    ledger: Ledger,
    plans: Sequence[WindowPlan],
    use: str,
) -> dict[str, str]:
    scan, found = source.look(spans), dict[str, str]()
    for index, plan in enumerate(plans):
        planned = plan.sources[use]
        if scan.fingerprints[index] == planned.fingerprint:
            continue
        tasks = span_tasks(scan, index)
        rows = None if tasks["rows"].null_count else int(pc.sum(tasks["rows"]).as_py() or 0)
        if planned.reason.startswith(SKIPPED):
            if tasks.num_rows and source.readiness(spans[index]).ready:
                count = "rows" if rows is None else counted(rows, "row")
                found[plan.window] = f"{use} was left out when it was trained, and has {count} now"
            continue
        then, now = _planned(ledger, plan, use), _versions(tasks)
        if then is not None and rows == planned.rows and _is_rewrite(source, then, now):
            continue
        fewer = rows is not None and planned.rows is not None and rows < planned.rows
        words = f": {rows:,} rows now, {planned.rows:,} then" if fewer else ""
        found[plan.window] = _difference(use, then, now) + words
    return found


def _is_rewrite(source: SourcePlanner, then: Versions, now: Versions) -> bool:
    """Whether the same rows are in other files now: the table was compacted."""
    kept, new = now.keys() & then.keys(), now.keys() - then.keys()
    return bool(new) and all(now[path] == then[path] for path in kept) and source.rewritten(new)


def _is_comparable(share: Share, plan: WindowPlan) -> bool:
    """Whether the plan asked for the same rows as the declaration does now."""
    planned = plan.sources.get(share.source)
    return (
        planned is not None
        and share.span is not None
        and identity_of(planned) == identity_of(share.plan())
    )


def _planned(ledger: Ledger, plan: WindowPlan, use: str) -> Versions | None:
    """What was planned; None where that is not kept."""
    try:
        tasks = ledger.tasks(plan.window, plan.generation)
    except DataError:
        return None
    return _versions(tasks.filter(pc.equal(tasks["source"], use)))


def _difference(source: str, then: Versions | None, now: Versions) -> str:
    if then is None:
        return f"{source}: its data has changed since it was planned (which files is not recorded)"
    kinds = {
        "new": now.keys() - then.keys(),
        "changed": {path for path in now.keys() & then.keys() if now[path] != then[path]},
        "removed": then.keys() - now.keys(),
    }
    parts = [f"{len(paths)} {kind} ({_some(paths)})" for kind, paths in kinds.items() if paths]
    if not parts:
        return f"{source}: its declaration has changed since it was planned"
    return f"{source}: its files have changed since it was planned: {', '.join(parts)}"


def _versions(tasks: pa.Table) -> Versions:
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
