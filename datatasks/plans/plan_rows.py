"""Rows of windows and their plans, read and written inside somebody's transaction.

Light: imports neither Arrow nor NumPy. Every function takes a connection, so that what belongs
together is stored together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, union, update

from forebay.config.specs.windows import Interval, Spanned, Window
from forebay.datatasks.plans.plan import WindowPlan, segments_known
from forebay.datatasks.plans.window_order import BEFORE, IN_ORDER, span
from forebay.errors import ConfigError, DataError, FencedError
from forebay.home.database.tables import (
    batches,
    forgotten,
    inserted_id,
    lines,
    links,
    manifests,
    plans,
    requests,
    seals,
    slices,
    windows,
)
from forebay.home.store.base import Stored
from forebay.home.store.garbage import require_unburied
from forebay.system.instants import from_us, now_us, to_us

# Made once, since making a statement takes longer than its execution.
_OF_WINDOW = (windows.c.pipeline == bindparam("pipeline")) & (windows.c.key == bindparam("window"))
_WINDOW = select(windows).where(_OF_WINDOW)
_FORGOTTEN = (
    select(forgotten.c.generation)
    .where(forgotten.c.line == bindparam("line"), forgotten.c.window_id == windows.c.id)
    .correlate(windows)
    .scalar_subquery()
)
_COUNTS = plans.c.generation > func.coalesce(_FORGOTTEN, 0)
_GENERATIONS = select(plans.c.document).join(windows).where(_OF_WINDOW)
_IN_FORCE = plans.c.proposed.is_(False)
_NEWEST = _GENERATIONS.where(_COUNTS, _IN_FORCE).order_by(plans.c.generation.desc()).limit(1)
_AS_TRAINED = plans.c.generation == bindparam("trained")
_OF_LINE = (
    _GENERATIONS.where(plans.c.generation >= bindparam("trained"))
    .where(_AS_TRAINED | (plans.c.line == bindparam("line")) & _IN_FORCE)
    .order_by(plans.c.generation.desc())
    .limit(1)
)
_PROPOSED = (
    select(plans.c.id, plans.c.generation)
    .join(windows)
    .where(_OF_WINDOW, plans.c.line == bindparam("line"), plans.c.proposed.is_(True))
    .order_by(plans.c.generation.desc())
)
# Few at any time, however many windows there are.
_ALL_PROPOSED = (
    select(plans.c.id, windows.c.key, plans.c.generation)
    .join(windows)
    .where(windows.c.pipeline == bindparam("pipeline"), plans.c.proposed.is_(True))
)
_OF_WINDOWS = (windows.c.pipeline == bindparam("pipeline")) & windows.c.key.in_(
    bindparam("keys", expanding=True)
)
_TRAINED_SPANS = select(windows.c.key, windows.c.starts_at, windows.c.ends_at).where(
    _OF_WINDOWS, select(links.c.id).where(links.c.window_id == windows.c.id).exists()
)
_DOCUMENTS = (
    select(windows.c.key, plans.c.generation, plans.c.document).join(plans).where(_OF_WINDOWS)
)
_FINGERPRINTS = (
    select(windows.c.key, plans.c.generation, plans.c.fingerprint)
    .join(plans)
    .where(_OF_WINDOWS, _IN_FORCE)
    .order_by(windows.c.key, plans.c.generation)
)
_LINE_ID = select(lines.c.id).where(
    lines.c.pipeline == bindparam("pipeline"), lines.c.line == bindparam("line")
)
_TRAINED_BY_LINE = (
    (links.c.window_id == windows.c.id)
    & (links.c.generation == plans.c.generation)
    & (links.c.line_id == _LINE_ID.scalar_subquery())
)
_TRAINED = (
    select(plans.c.generation)
    .join(windows)
    .join(links, _TRAINED_BY_LINE)
    .where(_OF_WINDOW, _COUNTS)
    .order_by(plans.c.generation.desc())
    .limit(1)
)
_WITH_LINKS = (
    select(windows.c.key, plans.c.generation, plans.c.line, links.c.id)
    .select_from(windows)
    .join(plans)
    .outerjoin(links, _TRAINED_BY_LINE)
    .where(_OF_WINDOWS, _COUNTS, or_(links.c.id.is_not(None), _IN_FORCE))
    .order_by(plans.c.generation)
)
_STORE_WINDOW, _STORE_PLAN, _STORE_MANIFESTS = insert(windows), insert(plans), insert(manifests)


class WindowState(NamedTuple):
    """What a line knows of a window.

    plan: see `plan_for`. is_trained: whether the line has trained the window from it.
    next_generation: a number that no generation of the window has had, not even a forgotten one:
    what is trained again must not pass for what was trained before.
    """

    plan: WindowPlan | None
    is_trained: bool
    next_generation: int


def window_id(connection: Connection, pipeline: str, window: str) -> int | None:
    """The id of a window that was planned once; None for any other."""
    rows = select(windows.c.id).where(windows.c.pipeline == pipeline, windows.c.key == window)
    return connection.scalar(rows)


def plan_id(connection: Connection, pipeline: str, window: str, generation: int) -> int | None:
    """The id of one generation; None where it is not there."""
    rows = select(plans.c.id).join(windows).where(_OF_WINDOW, plans.c.generation == generation)
    found: int | None = connection.scalar(rows, {"pipeline": pipeline, "window": window})
    return found


def planned_windows(
    connection: Connection, pipeline: str, line: str, before: Spanned | None = None
) -> list[str]:
    """Keys of the windows that have a plan for a line, in order: all, or those before another."""
    of_window = plans.c.window_id == windows.c.id
    rows = (
        select(windows.c.key)
        .where(windows.c.pipeline == pipeline)
        .where(select(plans.c.id).where(of_window, _COUNTS).correlate(windows).exists())
        .order_by(*IN_ORDER)
    )
    asked: dict[str, str | int] = {"line": line}
    if before is not None:
        rows = rows.where(BEFORE)
        asked |= span(before)
    return list(connection.scalars(rows, asked))


def generations(connection: Connection, pipeline: str, window: str) -> list[int]:
    rows = select(plans.c.generation).join(windows).where(_OF_WINDOW).order_by(plans.c.generation)
    return list(connection.scalars(rows, {"pipeline": pipeline, "window": window}))


def last_generation(connection: Connection, pipeline: str, window: str) -> int:
    """The highest number that a generation of the window ever had; 0 before the first."""
    found = connection.execute(_WINDOW, {"pipeline": pipeline, "window": window}).one_or_none()
    return 0 if found is None else found.last_generation


def plan_for(connection: Connection, pipeline: str, line: str, window: str) -> WindowPlan | None:
    """The plan that a line has trained a window from, or is to train it from; None without one.

    A line keeps the plan of its model until it asks for another one itself: what other lines plan
    since is theirs. A line that has not trained the window takes the newest plan, and one that has
    forgotten it takes none that was there then.
    """
    return _latest(connection, pipeline, line, window)[0]


def state_of(connection: Connection, pipeline: str, line: str, window: str) -> WindowState:
    last = last_generation(connection, pipeline, window)
    if not last:
        return WindowState(None, is_trained=False, next_generation=1)
    plan, trained = _latest(connection, pipeline, line, window)
    is_trained = plan is not None and plan.generation == trained
    return WindowState(plan, is_trained, last + 1)


def trained_plans(
    connection: Connection, pipeline: str, line: str, keys: Iterable[str]
) -> dict[str, WindowPlan]:
    found: dict[str, int] = {}
    for some in batches(keys):
        asked = {"pipeline": pipeline, "line": line, "keys": some}
        for key, generation, asked_by, link in connection.execute(_WITH_LINKS, asked):
            if link is not None:
                found[key] = generation
            elif asked_by == line:
                found.pop(key, None)
    return plans_of(connection, pipeline, found)


def changed_plans(
    connection: Connection, pipeline: str, generations: Mapping[str, int]
) -> dict[str, int]:
    """Windows whose newest plan is of other data than this generation's, and the newest's number.

    A window whose generation is not there any more is left out.
    """
    found: dict[str, int] = {}
    for keys in batches(generations):
        own: dict[str, str] = {}
        asked = {"pipeline": pipeline, "keys": keys}
        for key, generation, fingerprint in connection.execute(_FINGERPRINTS, asked):
            if generation == generations[key]:
                own[key] = fingerprint
            if own.get(key, fingerprint) == fingerprint:
                found.pop(key, None)
            else:
                found[key] = generation
    return found


def plans_of(
    connection: Connection, pipeline: str, generations: Mapping[str, int]
) -> dict[str, WindowPlan]:
    found: dict[str, WindowPlan] = {}
    for keys in batches(generations):
        for row in connection.execute(_DOCUMENTS, {"pipeline": pipeline, "keys": keys}):
            if generations[row.key] == row.generation:
                found[row.key] = WindowPlan.of_document(row.document, f"a plan of window {row.key}")
    return found


def trained_generation(connection: Connection, pipeline: str, line: str, window: str) -> int | None:
    """The newest generation that a line has trained to its end, and has not forgotten since."""
    asked = {"pipeline": pipeline, "window": window, "line": line}
    found: int | None = connection.scalar(_TRAINED, asked)
    return found


def trained_over(connection: Connection, pipeline: str, line: str, span: Interval) -> list[Window]:
    """Windows that a line has trained and that share time with a span, in order.

    Forgotten ones too: their models stay in the line, and hold their rows.
    """
    trained = (
        select(links.c.id)
        .join(lines, lines.c.id == links.c.line_id)
        .where(links.c.window_id == windows.c.id, lines.c.line == line)
    )
    rows = (
        select(windows.c.key, windows.c.starts_at, windows.c.ends_at)
        .where(windows.c.pipeline == pipeline, trained.exists())
        .where(windows.c.ends_at > to_us(span.start), windows.c.starts_at < to_us(span.end))
        .order_by(*IN_ORDER)
    )
    return [_window(*row) for row in connection.execute(rows)]


def manifests_of(
    connection: Connection, pipeline: str, window: str, generation: int
) -> dict[str, Stored]:
    """The manifests of one generation, by stream."""
    joined = manifests.join(plans).join(windows, windows.c.id == plans.c.window_id)
    of_window = select(manifests).select_from(joined).where(_OF_WINDOW)
    rows = of_window.where(plans.c.generation == generation)
    asked = {"pipeline": pipeline, "window": window}
    return {
        row.stream: Stored(name=row.name, checksum=row.checksum, size_bytes=row.size_bytes)
        for row in connection.execute(rows, asked)
    }


def copy_plan(connection: Connection, pipeline: str, line: str, window: str) -> WindowPlan:
    """Propose the tasks of a line's plan as a new generation of this line. Reads no storage.

    Raises:
        DataError: when the window has no plan.
    """
    newest = plan_for(connection, pipeline, line, window)
    if newest is None:
        raise DataError(f"window {window} of pipeline {pipeline!r} has no plan: plan it first")
    stored = manifests_of(connection, pipeline, window, newest.generation)
    generation = last_generation(connection, pipeline, window) + 1
    plan = newest.model_copy(update={"generation": generation})
    store_plan(connection, pipeline, line, plan, stored, proposed=True)
    return plan


def proposed_generation(
    connection: Connection, pipeline: str, line: str, window: str
) -> int | None:
    asked = {"pipeline": pipeline, "line": line, "window": window}
    found = connection.execute(_PROPOSED, asked).first()
    return None if found is None else found.generation


def drop_proposal(connection: Connection, pipeline: str, line: str, window: str) -> None:
    asked = {"pipeline": pipeline, "line": line, "window": window}
    _drop(connection, [row.id for row in connection.execute(_PROPOSED, asked)])


def let_count(connection: Connection, pipeline: str, generations: Mapping[str, int]) -> None:
    """Let plans count that a job is about to train. generations: of the plans, by window."""
    rows = connection.execute(_ALL_PROPOSED, {"pipeline": pipeline}).all()
    ids = [row.id for row in rows if generations.get(row.key) == row.generation]
    for some in batches(ids):
        connection.execute(update(plans).where(plans.c.id.in_(some)).values(proposed=False))


def withdraw(
    connection: Connection, pipeline: str, line: str, generations: Mapping[str, int]
) -> None:
    """Make plans proposals again that a job has refused to train, where older ones are trained.

    generations: of the job's plans, by window; what it has trained stays as it is.
    """
    for window, generation in generations.items():
        trained = trained_generation(connection, pipeline, line, window)
        if trained is not None and trained < generation:
            of_window = plans.c.window_id == window_id(connection, pipeline, window)
            refused = (of_window, plans.c.generation == generation, plans.c.line == line)
            connection.execute(update(plans).where(*refused).values(proposed=True))


def store_plan(
    connection: Connection,
    pipeline: str,
    line: str,
    plan: WindowPlan,
    stored: dict[str, Stored],
    *,
    proposed: bool = False,
) -> None:
    """Make a plan, which a line asked for, the newest of its window.

    proposed: not before a job that trains it is submitted; it replaces what was proposed before.

    Raises:
        FencedError: when the window has had a generation of this number meanwhile.
        ConfigError: when a window of this key was trained on another time.
    """
    asked = {"pipeline": pipeline, "window": plan.window}
    found = connection.execute(_WINDOW, asked).one_or_none()
    if found is not None and found.last_generation >= plan.generation:
        raise FencedError(
            f"another process planned window {plan.window} at the same time: run again, to use "
            "that plan"
        )
    newest = {
        "starts_at": to_us(plan.start),
        "ends_at": to_us(plan.end),
        "last_generation": plan.generation,
        "last_segments": segments_known(plan, "" if found is None else found.last_segments),
    }
    if found is None:
        values = {"pipeline": pipeline, "key": plan.window, **newest}
        of_window = inserted_id(connection.execute(_STORE_WINDOW, values))
    else:
        of_window = found.id
        require_same_spans(connection, pipeline, [plan.as_window])
        connection.execute(update(windows).where(windows.c.id == of_window).values(newest))
    drop_proposal(connection, pipeline, line, plan.window)
    stored_plan = {
        "window_id": of_window,
        "generation": plan.generation,
        "line": line,
        "fingerprint": plan.fingerprint,
        "document": plan.model_dump_json(),
        "proposed": proposed,
        "planned_at": now_us(),
    }
    store_manifests(connection, inserted_id(connection.execute(_STORE_PLAN, stored_plan)), stored)


def store_manifests(connection: Connection, plan: int, stored: Mapping[str, Stored]) -> None:
    """Name the manifests of a plan, by stream."""
    if stored:
        require_unburied(connection, [each.name for each in stored.values()])
        rows = [
            {"plan_id": plan, "stream": stream, **each.model_dump()}
            for stream, each in stored.items()
        ]
        connection.execute(_STORE_MANIFESTS, rows)


def forget(connection: Connection, pipeline: str, line: str, window: str) -> bool:
    """Let a line plan and train a window again, as if it had none of its plans so far.

    What was requested of the line goes too, and how far its training was. Plans stay that another
    line asked for, has trained or is training. False when the line has no plan.
    """
    if plan_for(connection, pipeline, line, window) is None:
        return False
    found = connection.execute(_WINDOW, {"pipeline": pipeline, "window": window}).one()
    of_line = (forgotten.c.line == line, forgotten.c.window_id == found.id)
    connection.execute(delete(forgotten).where(*of_line))
    values = {"line": line, "window_id": found.id, "generation": found.last_generation}
    connection.execute(insert(forgotten).values(values))
    claimed = requests.c.tag.startswith(f"{line}:", autoescape=True)
    connection.execute(delete(requests).where(requests.c.window_id == found.id, claimed))
    sealed = (seals.c.window_id == found.id, seals.c.line_id == _LINE_ID.scalar_subquery())
    connection.execute(delete(seals).where(*sealed), {"pipeline": pipeline, "line": line})
    _drop_unwanted(connection, found.id)
    return True


def forgotten_of(
    connection: Connection, pipeline: str, line: str, generations: Mapping[str, int]
) -> set[str]:
    of_windows = select(windows.c.key, forgotten.c.generation).join(windows).where(_OF_WINDOWS)
    rows = of_windows.where(forgotten.c.line == line)
    found: set[str] = set()
    for keys in batches(generations):
        known = connection.execute(rows, {"pipeline": pipeline, "keys": keys})
        found |= {row.key for row in known if generations[row.key] <= row.generation}
    return found


def _drop_unwanted(connection: Connection, window: int) -> None:
    """Remove plans that all lines have forgotten, and what was decided in favour of them."""
    wanted = union(
        select(plans.c.line, plans.c.generation).where(plans.c.window_id == window),
        *(
            select(lines.c.line, table.c.generation)
            .join_from(lines, table, table.c.line_id == lines.c.id)
            .where(table.c.window_id == window)
            for table in (links, seals)
        ),
    )
    of_window = select(forgotten.c.line, forgotten.c.generation)
    rows = connection.execute(of_window.where(forgotten.c.window_id == window))
    up_to = {row.line: row.generation for row in rows}
    kept = {row[1] for row in connection.execute(wanted) if row[1] > up_to.get(row[0], 0)}
    unwanted = (plans.c.window_id == window, plans.c.generation.not_in(kept))
    decided = (requests.c.window_id == window, requests.c.generation.not_in(kept))
    connection.execute(delete(requests).where(*decided))
    _drop(connection, list(connection.scalars(select(plans.c.id).where(*unwanted))))


def _drop(connection: Connection, ids: list[int]) -> None:
    connection.execute(delete(manifests).where(manifests.c.plan_id.in_(ids)))
    connection.execute(delete(slices).where(slices.c.plan_id.in_(ids)))
    connection.execute(delete(plans).where(plans.c.id.in_(ids)))


def _latest(
    connection: Connection, pipeline: str, line: str, window: str
) -> tuple[WindowPlan | None, int | None]:
    """See `plan_for`; and the newest generation that the line has trained."""
    trained = trained_generation(connection, pipeline, line, window)
    asked = {"pipeline": pipeline, "window": window, "line": line, "trained": trained}
    found = connection.scalar(_NEWEST if trained is None else _OF_LINE, asked)
    plan = None if found is None else WindowPlan.of_document(found, f"a plan of window {window}")
    return plan, trained


def require_same_spans(connection: Connection, pipeline: str, planned: Iterable[Window]) -> None:
    """A key stands for one time, once a model was trained on it: by it windows are in order."""
    now = {window.key: window.span for window in planned}
    for keys in batches(now):
        for found in connection.execute(_TRAINED_SPANS, {"pipeline": pipeline, "keys": keys}):
            before = _window(*found).span
            if before != now[found.key]:
                raise ConfigError(
                    f"window {found.key} was trained as {before}, but is now declared as "
                    f"{now[found.key]}: dataset.timezone or train.warm_start has been changed "
                    "since. Undo the change, or give the changed pipeline another name"
                )


def _window(key: str, starts_us: int, ends_us: int) -> Window:
    return Window(Interval(from_us(starts_us), from_us(ends_us)), key)
