"""Where a model line begins, which windows may come next, and what may become a link of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from forebay.config.explain import declared_columns
from forebay.config.specs.base import format_duration
from forebay.config.specs.datasets import source_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import (
    Interval,
    Spanned,
    Window,
    WindowGrid,
    WindowSize,
    first_window_key,
    is_warm_start,
    order_of,
    warm_start_window,
)
from forebay.datatasks.plans import history, plan_rows
from forebay.datatasks.plans.plan import NO_ROWS, WindowPlan
from forebay.errors import ConfigError, ForebayError, NotReadyError, RowsLostError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import of_line, retrain_command
from forebay.executors.model_line.judgement import SourceFacts
from forebay.executors.model_line.lease import living_holder
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.model_line.rows import line_rows
from forebay.home.database.open import database_of
from forebay.home.store.open import store_of
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.models.identity import IDENTITY, ModelIdentity

# A checkpoint is fetched for this if the store is a bucket, but not a larger one than that.
_BYTES_MAX = 256 * 2**20
_UNSEEN = "the label, or an option of model.mixture"


def model_changes(
    chain: ModelChain, link: Link, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> str:
    read, declared = list(link.seen), pipeline.use_names
    others = [f"sources {', '.join(read)} there, {', '.join(declared)} here"] * (read != declared)
    found = _identity(chain, link)
    if found is None:
        return "; ".join(others)
    own = {name: sources[name] for name in pipeline.source_names}
    layout = FeatureLayout.of(pipeline.dataset, declared_columns(pipeline, own))
    labels, uses = pipeline.dataset.targets, len(pipeline.uses)
    wanted = ModelIdentity.of(layout, pipeline.model, pipeline.train, uses, labels)
    # Their names say more than their number.
    found = found.model_copy(update={"sources": len(declared)})
    return "; ".join([*others, *wanted.differences(found)]) or _UNSEEN


def _identity(chain: ModelChain, link: Link) -> ModelIdentity | None:
    """The identity of the link's checkpoint; None if it is not kept, or its model only counts."""
    stored = link.files.get("checkpoint")
    if stored is None or stored.size_bytes > _BYTES_MAX:
        return None
    try:
        tree = store_of(chain.home).tree(stored)
    except ForebayError:
        return None  # the error that this text is for matters more
    file = next(tree.rglob(IDENTITY), None)
    return None if file is None else ModelIdentity.model_validate_json(file.read_text())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A day may be longer than others by this much where the clocks change.
_LONGER_DAY = timedelta(hours=1)


def warm_start_of(pipeline: PipelineSpec, chain: ModelChain, first: Window) -> Window | None:
    """The warm start that a run beginning with `first` needs, trained or not; None without one.

    A line keeps the one that it began with, whatever is declared now.
    """
    begin = chain.first() if chain.is_begun() else None
    if begin is None:
        start = pipeline.train.warm_start
        return None if start is None or start >= first.start else warm_start_window(start, first)
    if begin.start > first.start or not is_warm_start(begin.window):
        return None
    return Window(Interval(begin.start, begin.end), begin.window)


def drop_unused_warm_start(chain: ModelChain, warm: Window | None) -> None:
    """Remove a warm start that no window was built on, before a line begins with another one.

    warm: the one that it begins with. Nothing is removed while a job trains the line.
    """
    first = chain.first()
    if first is None or chain.is_begun() or (warm is not None and warm.key == first.window):
        return
    if not living_holder(chain.home, chain.pipeline, chain.line):
        chain.begin_anew(forget_plans=False)


def warm_start_notes(pipeline: PipelineSpec, chain: ModelChain, first: Window) -> list[str]:
    """A note for a line that began with a different warm start from the one declared now.

    first: where the run begins.
    """
    declared, begin = pipeline.train.warm_start, chain.first()
    if begin is None or (declared is not None and declared >= first.start):
        return []
    warm = begin if is_warm_start(begin.window) else None
    if declared == (warm and warm.start):
        return []
    now = "not declared" if declared is None else f"{declared:%Y-%m-%dT%H:%MZ}"
    keeps = "began without a warm start, and continues without one"
    if warm is not None:
        span = Interval(warm.start, warm.end)
        keeps = f"keeps the warm start {warm.window} ({span}) that it began with"
    note = (
        f"train.warm_start is {now} now: line {chain.line!r} {keeps}; another line (--line NAME) "
        "begins with what is declared"
    )
    return [note]


def require_compatible(
    chain: ModelChain, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> None:
    """Require the features, label and model that the line has been trained with so far.

    Raises:
        ConfigError: when the declaration was changed.
    """
    newest = next(iter(chain.last()), None)
    fingerprint = model_fingerprint_of(pipeline, sources)
    if newest is not None and newest.model_fingerprint != fingerprint:
        changes = model_changes(chain, newest, pipeline, sources)
        chain.require_same_fingerprint(newest, fingerprint, changes)


def require_checkpoint(chain: ModelChain, parent: Link | None, windows_kept: int) -> None:
    """Require that a window has no parent, or that the parent's checkpoint is kept.

    windows_kept: how many windows keep theirs, for the message.

    Raises:
        ConfigError: when the checkpoint is no longer kept.
    """
    if parent is None or "checkpoint" in parent.files:
        return
    trained = [key for key in chain.windows() if not is_warm_start(key)]
    links = chain.newest_of(trained)
    kept = next((key for key, link in links.items() if "checkpoint" in link.files), None)
    ways = [] if kept is None else [f"begin with the window after {kept}"]
    if trained:
        first = trained[0]
        ways.append(
            f"train the line again from its start (--reprocess --from {first}; in "
            f"Airflow, a backfill over all runs from {first})"
        )
    ways.append("train a line of its own (--line NAME)")
    raise ConfigError(
        f"window {parent.window} can no longer be built on: its checkpoint is not kept on line "
        f"{chain.line!r} (job.checkpoint.windows_kept is {windows_kept}). What to do: "
        + ", or ".join(ways)
    )


def overlap_with(chain: ModelChain, grid: WindowGrid, windows: Sequence[Window]) -> str:
    """Why a line cannot train a range of windows; an empty text when no row would be trained twice.

    A window that it has trained may be trained again, but no different one that overlaps it.
    """
    if not chain.is_begun():
        return ""
    spans = {window.key: window.span for window in windows}
    for other in chain.over(Interval(windows[0].start, windows[-1].end)):
        if spans.get(other.key) == other.span:
            continue
        first = next(each for each in windows if each.end > other.start)
        if is_warm_start(other.key):
            return (
                f"window {first.key} is part of the warm start {other.key} that this line begins "
                f"with: its rows are trained already. Windows of this line begin with "
                f"{grid.at(other.end).key}; train earlier ones on a line of their own (--line "
                f"NAME), or begin this one anew ({of_line(chain, 'forget')} --all)"
            )
        return (
            f"window {first.key} ({first.span}) shares rows with window {other.key} "
            f"({other.span}), which line {chain.line!r} has trained: dataset.window or "
            "dataset.timezone was changed since. Undo the change, or give the changed pipeline "
            "another name"
        )
    return ""


def gap_before(chain: ModelChain, grid: WindowGrid, first: Window) -> str:
    """Why a line cannot continue with window `first`; an empty text when it can.

    A window's model starts from the window before it, so none may be left out, and no row may be
    trained twice.
    """
    overlap = overlap_with(chain, grid, [first])
    if overlap:
        return overlap
    last = chain.before(first)
    if last is None or first.start <= last.end or not chain.is_begun():
        return ""
    expected, newest = grid.at(last.end).key, grid.before(first).key
    missing = (
        f"window {expected} is" if expected == newest else f"windows {expected} to {newest} are"
    )
    return (
        f"{missing} not trained yet, and each window starts from the one before it: begin with "
        f"{expected} (--from {expected}; in Airflow, create a backfill from {expected})"
    )


def require_no_gap(chain: ModelChain, grid: WindowGrid, window: Window) -> None:
    """Require that the line can continue with a window.

    Raises:
        ConfigError: when it cannot, see `gap_before`.
    """
    gap = gap_before(chain, grid, window)
    if gap:
        raise ConfigError(gap)


class StaleStart(NamedTuple):
    """What is wrong. first: the stale window to begin with. command: trains it up to the window."""

    reason: str
    first: str
    command: str


def stale_start(chain: ModelChain, windows: Sequence[Window]) -> StaleStart | None:
    """The first of these windows, trained in this order, that starts from a stale model.

    A model between two of them becomes stale when the earlier one is trained.
    """
    last: Window | None = None
    for window in windows:
        follows = last is not None and last.end == window.start
        parent = None if follows else chain.before(window)
        reason = first = None
        if parent is not None and last is not None and order_of(last) < order_of(parent):
            reason, first = f"stale once window {last.key} is trained again", last.key
        elif parent is not None and (reason := chain.stale_reason(parent)):
            first = next(iter(chain.stale_reasons()))
        if parent is not None and reason and first:
            begin = first_window_key(first)
            return StaleStart(
                f"window {window.key} starts from the model of window {parent.window}, which is "
                f"{reason}",
                begin,
                retrain_command(chain, begin, window.key),
            )
        last = window
    return None


def stale_warnings(
    chain: ModelChain, windows: Sequence[Window], *, refused: bool, otherwise: str
) -> list[str]:
    """A warning where one of these windows would be trained on top of a stale model.

    Raises:
        ConfigError: if that is refused, with what can be done otherwise.
    """
    found = stale_start(chain, windows)
    if found is None:
        return []
    text = f"{found.reason}. To train the stale windows again with it: {found.command}"
    if refused:
        raise ConfigError(f"{text}{otherwise}")
    return [text]


def may_begin_with(chain: ModelChain, grid: WindowGrid, window: Window) -> bool:
    """Whether a line may begin with a window although runs of earlier windows trained nothing.

    It may if all of them are planned and none has rows: a line cannot begin with such a window, so
    their runs end red. A window whose planning failed may have rows.
    """

    def work(rows: Connection) -> bool:
        names = chain.pipeline, chain.line
        linked = line_rows.name_before(rows, line_rows.line_id(rows, *names), window)
        if linked is not None and not is_warm_start(linked.name.window):
            return False
        found = plan_rows.planned_windows(rows, *names, window)
        planned = [key for key in found if not is_warm_start(key)]
        plans = (plan_rows.plan_for(rows, *names, key) for key in reversed(planned))
        if any(plan is None or not plan.is_empty for plan in plans):
            return False
        known, before = set(planned), grid.before(window)
        if before.key not in known:
            return False
        while before.key in known:
            before = grid.before(before)
        return not history.entries(rows, chain.pipeline, before.key)

    return database_of(chain.home).read(work)


def require_heard(
    chain: ModelChain, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec], plan: WindowPlan
) -> None:
    """Require that the sources of a window have rows, or have not been silent for too long.

    The warm start may be earlier than all data of a source.

    Raises:
        NotReadyError: when a source has had no rows for longer than its `silent_max` allows, and
            its `late` is `fail`.
    """
    if is_warm_start(plan.window):
        return
    for name, source in plan.sources.items():
        ready = sources[source_of(name)].ready
        if source.reason != NO_ROWS or ready.late == "skip":
            continue
        since = plan.end - ready.silent_max
        if pipeline.dataset.window is WindowSize.DAY:
            since -= _LONGER_DAY
        if not _heard_after(chain, name, since, plan.as_window):
            longest = format_duration(ready.silent_max)
            raise NotReadyError(
                f"window {plan.window}: source {name!r} is silent: no rows for longer than "
                f"ready.silent_max ({longest}), up to {source.data_to:%Y-%m-%dT%H:%MZ}. What to "
                "do: load its rows and run again, raise ready.silent_max, continue without it with "
                "ready.late: skip, or declare when it begins or ends (starts, ends)"
            )


def require_agreement(chain: ModelChain, plan: WindowPlan, link: Link) -> None:
    """Require that all rows of a window are accounted for before it becomes a link.

    Raises:
        RowsLostError: when rows planned, served and trained do not agree.
    """
    for name, source in plan.sources.items():
        rows = SourceFacts.of(source, link)
        if not rows.agree:
            again = retrain_command(chain, link.window, link.window)
            raise RowsLostError(
                f"{rows.difference(link.window, name)}. The window is not added to the model line, "
                "and its training is discarded. What to do: fix the cause and run it again, or "
                f"plan it again too (`{again}`; in Airflow, clear its run)"
            )


def require_beginning(chain: ModelChain, plans: Sequence[WindowPlan]) -> None:
    """Require that a line that begins with these windows, in order, has rows in the first one.

    A window without rows is also refused after training (`require_learnt`); here, nothing has been
    started for it yet, and the window to begin with can be named.

    Raises:
        NotReadyError: when the first after a warm start, if there is one, is known to have none.
    """
    plans = [plan for plan in plans if not is_warm_start(plan.window)]
    first = next(iter(plans), None)
    if first is None or not first.is_empty:
        return
    before = chain.before(first.as_window)
    if before is not None and not is_warm_start(before.window):
        return
    begin = next((plan.window for plan in plans if not plan.is_empty), None)
    way = f"begin with the first window that has rows, --from {begin}"
    if begin is None:
        last = plans[-1].window
        way = f"wait for the first window that has rows (none up to {last} has): it begins the line"
    raise NotReadyError(
        f"window {first.window} cannot begin line {chain.line!r}: it has no rows. What to do: {way}"
    )


def require_learnt(chain: ModelChain, link: Link, learnt: Sequence[int]) -> None:
    """Require that the model a line begins with was trained on rows: nothing untrained serves.

    learnt: rows that the serving paradigm was trained on since the line began; for a model that
    only counts, and in a warm start, rows that it has seen.

    Raises:
        NotReadyError: when there are none.
    """
    begins = link.parent is None or is_warm_start(link.parent.window)
    own = sum(link.trained(source).rows for source in link.seen)
    if sum(learnt) and (own or not begins or is_warm_start(link.window)):
        return
    seen = ", ".join(f"{sums.rows:,} rows of {name}" for name, sums in link.seen.items())
    if is_warm_start(link.window):
        way = "leave out train.warm_start, or set it to where the history begins"
    else:
        way = "begin with a window that has rows for it (`forebay preview SOURCE` shows its rows)"
    raise NotReadyError(
        f"window {link.window} cannot begin line {chain.line!r}: its model has seen {seen} and "
        f"was trained on none of {'them' if not sum(learnt) else 'its own'}. What to do: {way}"
    )


def _heard_after(chain: ModelChain, source: str, instant: datetime, window: Spanned) -> bool:
    """Whether a window between an instant and a later window has rows, or the line is younger."""
    first = chain.first()
    if first is None:
        return instant <= window.start
    if instant <= (first.end if is_warm_start(first.window) else first.start):
        return True
    before = chain.before(window)
    if before is None:
        return False
    between = chain.between(Interval(_EPOCH, instant), before)
    return any(source in link.read and link.read[source].rows for link in between)
