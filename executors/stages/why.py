"""Why a window is not done: one answer from its plan, its jobs, its model and its data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from forebay.config.specs.datasets import source_of
from forebay.config.specs.windows import Window, first_window_key, is_warm_start
from forebay.datatasks.look.changes import changes_since
from forebay.datatasks.look.lags import Lag, in_vain, lags_of
from forebay.datatasks.look.why import last_failure, plans_now, why_not_planned
from forebay.datatasks.planning.operations import Clock
from forebay.datatasks.plans.plan import WindowPlan, fewer_rows, plan_text, skipped_text
from forebay.datatasks.window_range import parse_range
from forebay.errors import ConfigError, DataError, ForebayError, LineBusyError, NotReadyError
from forebay.executors.evaluation.summary import offset_words, stream_offsets
from forebay.executors.evaluation.words import event_words, not_known_text
from forebay.executors.job.stored_jobs import StoredJob, jobs_with_window
from forebay.executors.model_line.adjoining import WithheldError, require_all_adjoining
from forebay.executors.model_line.commands import FOLLOW, of_line, retrain_command, run_command
from forebay.executors.model_line.coverage import whole_of, withheld
from forebay.executors.model_line.lease import line_holder
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.serving import pinned_words
from forebay.executors.model_line.start import (
    gap_before,
    may_begin_with,
    overlap_with,
    require_beginning,
    require_checkpoint,
    require_compatible,
    stale_start,
    warm_start_of,
)
from forebay.executors.stages.target import StageTarget
from forebay.system.message import Message
from forebay.system.output.counted import counted

State = Literal[
    "not over",
    "waiting",
    "not planned",
    "planned",
    "running",
    "failed",
    "stale",
    "data changed",
    "trained",
]

_TRAIN_AGAIN = "train it again with the data as it is now"
_TRAIN_FROM = "train it together with the windows before it"
_JUDGE = (
    "nothing while its run goes on; if that has ended, clear its task evaluate and what follows in "
    "Airflow, or run it: that judges and publishes without training"
)
_RUN = "forebay run "
_BEGINS = "nothing: line {!r} begins with the first window that has rows"
_TRIES_AGAIN = "nothing: its run in Airflow tries again by itself"
_DONE = frozenset({"trained", "stale", "data changed", "not over"})
_CAUSED_BY_DATA = {NotReadyError.exit_code, DataError.exit_code}


class Why(Message):
    """One window's state, the reason for it, and what to do next (empty: nothing).

    command: the command for that, where there is one; it is accepted in this state.
    lags: of the streams, while the window is not trained.
    """

    window: str
    state: State
    reason: str
    next: str = ""
    command: str = ""
    generation: int | None = None
    lags: tuple[Lag, ...] = ()


def why_window(target: StageTarget, clock: Clock) -> Why:
    """The state of a window, why it is not done, and what to do next.

    Raises:
        DataError: when its plan is damaged.
    """
    found = _unless_refused(target, _why(target, clock))
    if found.state in _DONE:
        return found
    project = target.project
    lags = lags_of(project.root, target.pipeline, project.sources, clock())
    vain = in_vain(lags) if found.next.startswith("nothing: line") else ""
    return found.model_copy(update={"lags": tuple(lags), "next": vain or found.next})


def _why(target: StageTarget, clock: Clock) -> Why:
    plan = target.ledger.latest_plan(target.key)
    link = target.chain.newest(target.key)
    jobs = jobs_with_window(target.home, target.pipeline.name, target.key, target.line)
    job = jobs[0] if jobs else None
    if job is not None and job.status.is_active:
        return _running(target.key, job)
    if plan is not None and link is not None and link.generation >= plan.generation:
        found = _trained(target, plan, link)
        return found.model_copy(update={"reason": found.reason + _failed_again(job, link)})
    if plan is not None and plan.is_open and clock() < plan.end:
        return _left_open(target, plan, job)
    if job is not None and _is_unfinished(job, target.key, plan):
        return _busy(target, job) or _ended(target, job)
    return _not_planned(target, clock) if plan is None else _planned(target, plan)


def _unless_refused(target: StageTarget, found: Why) -> Why:
    """The same answer, without a `run` that its line or the data would refuse: with the reason."""
    if not found.command.startswith(_RUN) or found.command.endswith(FOLLOW):
        return found
    refusal = _refusal(target, found)
    if refusal:
        return _refused(target, found, refusal)
    chain, grid = target.chain, target.pipeline.dataset.grid
    first = _windows_of(target, found.command)[0]
    parent, gap = chain.before(first), gap_before(chain, grid, first)
    if gap and parent is not None and parent.end < first.start:
        found = _refused(target, found, gap, grid.at(parent.end).key)
    elif (stale := stale_start(chain, _to_train(target, found.command))) is not None:
        found = _refused(target, found, stale.reason, stale.first)
    return _as_data_allows(target, found, repaired=False)


def _as_data_allows(target: StageTarget, found: Why, *, repaired: bool) -> Why:
    """The same answer, if a `run` can read its windows, with the rows that are fewer then."""
    chain, sources = target.chain, target.project.sources
    try:
        plans = _plans_now(target, found.command)
        if not repaired:
            require_all_adjoining(chain, sources, plans)
    except WithheldError as error:
        found = _refused(target, found, str(error), error.first)
        return _as_data_allows(target, found, repaired=True)
    except ConfigError as error:
        return _refused(target, found, str(error))
    except ForebayError as error:
        reason = f"{found.reason}; it cannot be read again: {error}"
        following = {"reason": reason, "next": "correct that, then run it", "command": ""}
        return found.model_copy(update=following)
    first_key = _windows_of(target, found.command)[0].key if plans else ""
    try:
        require_beginning(chain, [plan for plan in plans if plan.window == first_key])
    except NotReadyError as error:
        found = _refused(target, found, str(error).partition(" What to do: ")[0])
        advice = found.next if found.state in _DONE else _BEGINS.format(target.line)
        return found.model_copy(update={"next": advice})
    links = chain.newest_of(plan.window for plan in plans)
    fewer = [_fewer_rows(links[plan.window], plan) for plan in plans if plan.window in links]
    return found.model_copy(update={"reason": found.reason + "".join(fewer)})


def _refused(target: StageTarget, found: Why, refusal: str, first: str = "") -> Why:
    """first: from which window on to train again, so that it is refused no longer."""
    repair = retrain_command(target.chain, first, first_window_key(target.key)) if first else ""
    return found.model_copy(
        update={
            "reason": f"{found.reason}; line {target.line!r} cannot train it: {refusal}",
            "next": "train again what it starts from, and it" if repair else "resolve that first",
            "command": repair,
        }
    )


def _windows_of(target: StageTarget, command: str) -> list[Window]:
    """The windows of a `run`.

    Raises:
        ConfigError: when they are not inside the dataset.
    """
    words = command.split()
    first, last = (words[words.index(option) + 1] for option in ("--from", "--to"))
    return parse_range(target.pipeline, first, last)


def _to_train(target: StageTarget, command: str) -> list[Window]:
    """What a `run` would train, the warm start included, in this order."""
    windows = _windows_of(target, command)
    again = {window.key for window in windows} if command.endswith("--reprocess") else set[str]()
    warm = warm_start_of(target.pipeline, target.chain, windows[0])
    asked = [*([warm] if warm else []), *windows]
    done = target.ledger.trained_plans(window.key for window in asked if window.key not in again)
    return [window for window in asked if window.key not in done]


def _plans_now(target: StageTarget, command: str) -> list[WindowPlan]:
    """Plans of what a `run` would train: of its first and last windows, and of all with models.

    Raises:
        ForebayError: when it would be refused because of its data.
    """
    if not command.startswith(_RUN):
        return []
    todo = _to_train(target, command)
    models = target.chain.newest_of(window.key for window in todo)
    project = target.project
    read = [window for window in todo if window in (todo[0], todo[-1]) or window.key in models]
    return plans_now(project.root, target.pipeline, project.sources, target.ledger, read)


def _fewer_rows(link: Link, plan: WindowPlan) -> str:
    words = fewer_rows({name: link.trained(name).rows for name in link.seen}, plan)
    return f"; trained again, window {plan.window}: {', '.join(words)}" if words else ""


def _refusal(target: StageTarget, found: Why) -> str:
    """Why `run` would refuse to train the window; an empty text when it would not."""
    chain, pipeline = target.chain, target.pipeline
    try:
        _windows_of(target, found.command)
        require_compatible(chain, pipeline, target.project.sources)
        if found.state in {"not planned", "planned"}:  # others begin where a checkpoint is kept
            parent = chain.before(target.window)
            require_checkpoint(chain, parent, pipeline.job.checkpoints_kept)
    except ConfigError as error:
        return str(error)
    return overlap_with(chain, pipeline.dataset.grid, [target.window])


def _running(window: str, job: StoredJob) -> Why:
    restarts = sum(job.status.restarts.values())
    progress = job.progress
    place = "it is starting"
    if progress is not None and progress.window:
        rows = ", ".join(f"{name} {count:,}" for name, count in progress.rows.items())
        place = (
            f"at step {progress.step:,} of window {progress.window} "
            f"({progress.windows_done} of {progress.windows_total} windows done; {rows} rows)"
            + (f", {progress.resumed}" if progress.resumed else "")
            + (f"; lag: {progress.lag_words}" if progress.lag_words else "")
        )
    again = f"; {counted(restarts, 'restart')} so far" if restarts else ""
    if job.status.hung:
        again += f", the last one that hung: {job.status.hung[-1]}"
    return Why(
        window=window,
        state="running",
        reason=f"job {job.job_id} is running: {place}{again}",
        next="follow its logs" if job.is_here else "wait: it runs on another host",
        command=f"forebay jobs logs -f {job.job_id}" if job.is_here else "",
    )


def _left_open(target: StageTarget, plan: WindowPlan, job: StoredJob | None) -> Why:
    """Of a window that goes on and that no job trains any more."""
    paused, chain = target.chain.is_paused(), target.chain
    why = "" if job is None else f": job {job.job_id} is {job.status.state}"
    return Why(
        window=plan.window,
        state="not over",
        reason=f"it goes on until {plan.end:%Y-%m-%dT%H:%MZ}, and nothing follows it{why}",
        next=f"{'resume' if paused else 'follow'} it: it goes on from its newest checkpoint",
        command=of_line(chain, "jobs resume") if paused else f"{of_line(chain, 'run')} {FOLLOW}",
    )


def _trained(target: StageTarget, plan: WindowPlan, link: Link) -> Why:
    chain, key = target.chain, target.key
    stale = chain.stale_reason(link)
    if stale:
        first = next(iter(chain.stale_reasons()))
        return Why(
            window=key,
            state="stale",
            reason=f"it is trained, but {stale}",
            next="train it again, from the first window that is stale",
            command=retrain_command(chain, first_window_key(first), first_window_key(key)),
            generation=plan.generation,
        )
    changed = target.ledger.data_changed({key: link.generation}).get(key)
    if changed:
        return Why(
            window=key,
            state="data changed",
            reason=f"it is trained, but its {changed}",
            next=_TRAIN_AGAIN,
            command=retrain_command(chain, key, key),
            generation=link.generation,
        )
    skipped = skipped_text(plan)
    reason = plan_text(plan) + (f"; without {skipped}" if skipped else "") + not_known_text(link)
    judgement = chain.judgement(link)
    reason += _said("offsets", offset_words([stream_offsets(chain, plan, link)]))
    reason += _said("event AUC", event_words(judgement) if judgement else ())
    left_out, came_back = _left_out(target, plan, link)
    reason += left_out
    project, pipeline = target.project, target.pipeline
    since = changes_since(project.root, pipeline, project.sources, target.ledger, [plan])
    last = chain.windows()[-1] if came_back else key
    advice, command = "", ""
    if since or came_back:
        advice, command = _TRAIN_AGAIN, retrain_command(chain, key, last)
    elif judgement is None and "scores" in link.files and not is_warm_start(key):
        reason += "; it is not judged, so it is not published either"
        advice, command = _JUDGE, run_command(chain, key, key)
    published = chain.published()
    if published is not None and published.pinned:
        window, generation = published.window, published.generation
        if (window, generation) != (key, link.generation):
            pinned = pinned_words(window, chain.pipeline, chain.line)
            reason += f"; generation {generation} of {pinned}"
    return Why(
        window=key,
        state="trained",
        reason="; ".join([reason, *since.get(key, [])]),
        next=advice,
        command=command,
        generation=plan.generation,
    )


def _failed_again(job: StoredJob | None, link: Link) -> str:
    if job is None or (job.generation(link.window) or 0) <= link.generation:
        return ""
    error = job.status.error
    cause = f": {error.message}" if error else ""
    return f"; job {job.job_id}, which was to train it again, {job.status.state}{cause}"


def _left_out(target: StageTarget, plan: WindowPlan, link: Link) -> tuple[str, bool]:
    """Rows that a declaration took away from the window, in words, and whether it has them now."""
    words, came_back = "", False
    for name, source in plan.sources.items():
        covered, whole = link.coverage.get(name), whole_of(plan, source)
        if covered is None:
            continue
        spec = target.project.sources[source_of(name)]
        back = [each for each in withheld(covered, spec) if each.end > whole.start]
        came_back |= bool(back)
        for each in back:
            words += (
                f"; rows of {name} of {each} were left out ({each.reason}), and are declared now"
            )
        if covered.gap is not None and not back:
            words += (
                f"; without rows of {name} of {covered.gap}: {covered.gap.reason}, as declared: "
                "no command trains them while it is"
            )
    return words, came_back


def _is_unfinished(job: StoredJob, window: str, plan: WindowPlan | None) -> bool:
    """Whether a job did not succeed, and the window was not planned again or forgotten after it."""
    if job.status.state not in {"failed", "lost", "cancelled"}:
        return False
    return plan is not None and (job.generation(window) or 0) >= plan.generation


def _busy(target: StageTarget, job: StoredJob) -> Why | None:
    """A window whose newest job found its line busy; None for any other."""
    error, plan = job.status.error, target.ledger.latest_plan(target.key)
    if error is None or error.error != LineBusyError.__name__ or plan is None:
        return None
    holder = line_holder(target.home, target.pipeline.name, target.line)
    if not holder:
        return _planned(target, plan)
    tries = "run it once that job has ended" if job.row.publishes else _TRIES_AGAIN
    return Why(
        window=target.key,
        state="planned",
        reason=f"{plan_text(plan)}; it waits for its line: job {holder} trains it",
        next=tries,
        generation=plan.generation,
    )


def _ended(target: StageTarget, job: StoredJob) -> Why:
    error, state = job.status.error, job.status.state
    ended = {"lost": "lost its supervisor", "cancelled": "was cancelled"}.get(state, state)
    cause = f": {error.error}: {error.message}" if error else ""
    advice, command = _again(target, job)
    return Why(
        window=target.key,
        state="failed",
        reason=f"job {job.job_id} {ended}{cause}",
        next=advice,
        command=command,
    )


def _again(target: StageTarget, job: StoredJob) -> tuple[str, str]:
    logs = f"logs: forebay jobs logs {job.job_id}"
    note = f"it continues from the newest checkpoint ({logs})"
    if not job.row.publishes:  # a run in Airflow publishes in a separate stage
        error = job.status.error
        if error is not None and error.exit_code in _CAUSED_BY_DATA:
            # Clearing its training alone would read the plan that it failed with again.
            return f"clear this window's whole run in Airflow: it reads its data again ({logs})", ""
        return f"clear this window's run in Airflow from the task training_executors on: {note}", ""
    first, last = job.windows[0].key, job.windows[-1].key
    again = " --reprocess" if job.job_id.endswith(".reprocess") else ""
    error = job.status.error
    fix = error is not None and error.exit_code == ConfigError.exit_code
    advice = f"{'change what it says, then run it' if fix else 'run it'} again: {note}"
    return advice, run_command(target.chain, first_window_key(first), last) + again


def _not_planned(target: StageTarget, clock: Clock) -> Why:
    project, pipeline = target.project, target.pipeline
    found = why_not_planned(
        project.root, pipeline, project.sources, target.ledger, target.window, clock
    )
    link = target.chain.newest(target.key)
    forgotten = f"forgotten after generation {link.generation} was trained; " if link else ""
    why = f"{of_line(target.chain, 'why')} {target.key}"
    command = {"run": _run_from_last(target), "why": why, "": ""}[found.command]
    return Why(
        window=target.key,
        state=found.state,
        reason=forgotten + found.reason,
        next=found.next,
        command=command,
    )


def _planned(target: StageTarget, plan: WindowPlan) -> Why:
    """A plan that nothing has trained: does it wait for the window before it?"""
    window = plan.window
    reason = plan_text(plan)
    before, trained = _window_before(target), _trained_before(target)
    begins = trained is None and _may_begin(target)
    if begins and plan.is_empty and not is_warm_start(window):
        return Why(
            window=window,
            state="planned",
            reason=f"{reason}; a line cannot begin with a window that has no rows",
            next=_BEGINS.format(target.line),
            generation=plan.generation,
        )
    can_start = trained is not None and trained.end >= target.window.start
    waits = bool(before) and not begins and not can_start
    if waits:
        reason += f"; it waits for window {before}, which is not trained"
    failure = last_failure(target.ledger, window)
    if failure:
        reason += f"; planning it again failed: {failure}"
    return Why(
        window=window,
        state="planned",
        reason=reason,
        next=_TRAIN_FROM if waits else "train it",
        command=_run_from_last(target, _first_with_rows(target, before) if waits else ""),
        generation=plan.generation,
    )


def _run_from_last(target: StageTarget, first: str = "") -> str:
    """Train a window, with all windows that the line has to train before it.

    first: where a line begins that has trained nothing; by default with the window itself.
    """
    key = first_window_key(target.key)
    trained = _trained_before(target)
    if trained is None:
        return run_command(target.chain, first or key, key)
    if trained.end < target.window.start:
        key = target.pipeline.dataset.grid.at(trained.end).key
    return run_command(target.chain, key, first_window_key(target.key))


def _trained_before(target: StageTarget) -> Link | None:
    return target.chain.before(target.window) if target.chain.is_begun() else None


def _may_begin(target: StageTarget) -> bool:
    if all(is_warm_start(key) for key in target.ledger.windows(before=target.window)):
        return True
    return may_begin_with(target.chain, target.pipeline.dataset.grid, target.window)


def _window_before(target: StageTarget) -> str:
    dataset = target.pipeline.dataset
    if is_warm_start(target.key) or target.window.start <= dataset.start:
        return ""
    return dataset.grid.before(target.window).key


def _first_with_rows(target: StageTarget, before: str) -> str:
    """Where a line that has trained nothing begins, so that no planned rows are left out.

    before: the window before; it may not be planned.
    """
    dataset = target.pipeline.dataset
    for key in target.ledger.windows(before=target.window):
        plan = None if is_warm_start(key) else target.ledger.latest_plan(key)
        if plan is None or plan.is_empty or plan.start < dataset.start:
            continue
        if dataset.grid.at(plan.start).key == key:  # else of windows of another size
            return min(key, before)
    return before


def _said(of: str, words: Iterable[str]) -> str:
    text = ", ".join(words)
    return f"; {of}: {text}" if text else ""
