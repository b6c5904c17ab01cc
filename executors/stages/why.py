"""Why a window is not done: one answer from its plan, its jobs, its model and its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from forebay.config.source_uses import source_of
from forebay.config.windows import Window, first_window_key, is_warm_start
from forebay.datatasks.changes import changes_since
from forebay.datatasks.lags import Lag, in_vain, lags_of
from forebay.datatasks.operations import Clock, shares_of
from forebay.datatasks.plans import SKIPPED, WindowPlan
from forebay.datatasks.why import last_failure, refused_plan, why_not_planned
from forebay.errors import ConfigError, DataError, LineBusyError, NotReadyError
from forebay.executors.evaluation.achieved_offsets import achieved_offsets, offset_words
from forebay.executors.evaluation.event_words import event_words
from forebay.executors.job.stored_jobs import StoredJob, jobs_with_window
from forebay.executors.model_line.adjoining import WithheldError, covered_by, require_adjoining
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import of_line, retrain_command, run_command
from forebay.executors.model_line.coverage import whole_of, withheld
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.start import (
    may_begin_with,
    overlap_with,
    require_checkpoint,
    require_compatible,
    stale_start,
)
from forebay.executors.stages.target import StageTarget
from forebay.home.store import store_of
from forebay.mixture.left_out import unsaid
from forebay.system.counted import counted
from forebay.system.message import Message

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
_RUN = "forebay run "
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
        again = _failed_again(job, link)
        return found.model_copy(update={"reason": found.reason + again}) if again else found
    if job is not None and _is_unfinished(job, target.key, plan):
        return _ended(target, job)
    return _not_planned(target, clock) if plan is None else _planned(target, plan)


def _unless_refused(target: StageTarget, found: Why) -> Why:
    """The same answer, without a `run` that its line would refuse: then with the reason for it."""
    if not found.command.startswith(_RUN):
        return found
    refusal, repair = _refusal(target, found), ""
    if not refusal:
        refusal, repair = _refused_start(target, _first_of(target, found.command))
    if not refusal and found.command.endswith("--reprocess"):
        first = _first_of(target, found.command).key
        windows = target.pipeline.dataset.grid.between(first, first_window_key(target.key))
        data = _refused_data(target, windows)
        if data:
            reason = f"{found.reason}; it cannot be read again: {data}"
            return found.model_copy(update={"reason": reason, "next": "", "command": ""})
        away = "".join(_declared_away(target, window) for window in windows)
        return found.model_copy(update={"reason": found.reason + away})
    if not refusal:
        return found
    return found.model_copy(
        update={
            "reason": f"{found.reason}; line {target.line!r} cannot train it: {refusal}",
            "next": "train again what it starts from, and it" if repair else "resolve that first",
            "command": repair,
        }
    )


def _refused_data(target: StageTarget, windows: Sequence[Window]) -> str:
    project = target.project
    return refused_plan(project.root, target.pipeline, project.sources, target.ledger, windows)


def _first_of(target: StageTarget, command: str) -> Window:
    """The window that a `run` begins with."""
    words = command.split()
    return target.pipeline.dataset.grid.parse(words[words.index("--from") + 1])


def _declared_away(target: StageTarget, window: Window) -> str:
    """In words, that training a window again leaves rows out that it was trained on; or nothing."""
    link = target.chain.newest(window.key)
    now = _declared_plan(target, window).sources
    words = [
        f"; trained again, window {window.key} has no rows of {name} ({now[name].reason}), and "
        f"it has {counted(rows, 'row')} of them now"
        for name in now
        if link is not None and (rows := link.trained(name).rows) and now[name].reason
    ]
    return "".join(words)


def _refused_start(target: StageTarget, window: Window) -> tuple[str, str]:
    """Why `run` would refuse to start with a window, and the command that mends it."""
    chain, sources = target.chain, target.project.sources
    last = first_window_key(target.key)
    stale = stale_start(chain, [window])
    if stale is not None:
        return stale.reason, retrain_command(chain, stale.first, last)
    try:
        plan = _declared_plan(target, window)
        require_adjoining(chain, sources, plan, covered_by(chain.before(window)))
    except WithheldError as error:
        return str(error), retrain_command(chain, error.first, last)
    except ConfigError as error:
        return str(error), ""
    return "", ""


def _declared_plan(target: StageTarget, window: Window) -> WindowPlan:
    """A window's plan as far as declarations tell."""
    shares = shares_of(target.pipeline, target.project.sources, [window])
    sources = {name: share.plan() for name, [share] in shares.items()}
    return WindowPlan(
        window=window.key,
        generation=1,
        start=window.start,
        end=window.end,
        sources=sources,
        fingerprint="",
    )


def _refusal(target: StageTarget, found: Why) -> str:
    """Why `run` would refuse to train the window; an empty text when it would not."""
    chain, pipeline = target.chain, target.pipeline
    try:
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
    skipped = _skipped_text(plan)
    reason = _plan_text(plan) + (f"; without {skipped}" if skipped else "") + _not_known_text(link)
    judgement = chain.judgement(link)
    reason += _offset_text(chain, plan, link, judgement) + _event_text(judgement)
    left_out, came_back = _left_out(target, plan, link)
    reason += left_out
    project, pipeline = target.project, target.pipeline
    since = changes_since(project.root, pipeline, project.sources, target.ledger, [plan])
    last = chain.windows()[-1] if came_back else key
    return Why(
        window=key,
        state="trained",
        reason="; ".join([reason, *since.get(key, [])]),
        next=_TRAIN_AGAIN if since or came_back else "",
        command=retrain_command(chain, key, last) if since or came_back else "",
        generation=plan.generation,
    )


def _failed_again(job: StoredJob | None, link: Link) -> str:
    """What became of a job that was to train a trained window again; empty without one."""
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
    """Whether a job did not succeed, and the window was not planned again after it."""
    if job.status.state not in {"failed", "lost", "cancelled"}:
        return False
    return plan is None or (job.generation(window) or 0) >= plan.generation


def _ended(target: StageTarget, job: StoredJob) -> Why:
    """A window whose newest job did not succeed."""
    error, state = job.status.error, job.status.state
    if error is not None and error.error == LineBusyError.__name__:
        return Why(
            window=target.key,
            state="planned",
            reason=f"it waits for its line: {error.message}",
            next="nothing: its run in Airflow tries again by itself",
        )
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
    """How to start a job again that did not succeed: in words, and as a command."""
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
    command = {"run": _run_from_last(target), "why": _why_command(target), "": ""}[found.command]
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
    reason = _plan_text(plan)
    before, trained = _window_before(target), _trained_before(target)
    begins = trained is None and _may_begin(target)
    if begins and plan.is_empty and not is_warm_start(window):
        return Why(
            window=window,
            state="planned",
            reason=f"{reason}; a line cannot begin with a window that has no rows",
            next=f"nothing: line {target.line!r} begins with the first window that has rows",
            generation=plan.generation,
        )
    can_start = trained is not None and trained.end >= target.window.start
    waits = bool(before) and not begins and not can_start
    if waits:
        reason += f"; it waits for window {before}, which is not trained"
    failure = _refused_data(target, [target.window])
    if failure:
        return Why(
            window=window,
            state="planned",
            reason=f"{reason}; it cannot be planned again: {failure}",
            next="correct that, then run it",
            generation=plan.generation,
        )
    failure = last_failure(target.ledger, window)
    if failure:
        reason += f"; planning it again failed: {failure}"
    return Why(
        window=window,
        state="planned",
        reason=reason,
        next=_TRAIN_FROM if waits else "train it",
        command=_run_from_last(target, before if waits else ""),
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


def _why_command(target: StageTarget) -> str:
    return f"{of_line(target.chain, 'why')} {target.key}"


def _trained_before(target: StageTarget) -> Link | None:
    return target.chain.before(target.window) if target.chain.is_begun() else None


def _may_begin(target: StageTarget) -> bool:
    """Whether a line without models before a window may begin with it."""
    if all(is_warm_start(key) for key in target.ledger.windows_before(target.window)):
        return True
    return may_begin_with(target.chain, target.pipeline.dataset.grid, target.window)


def _window_before(target: StageTarget) -> str:
    """The key of the window before; an empty text where the dataset begins."""
    dataset = target.pipeline.dataset
    if is_warm_start(target.key) or target.window.start <= dataset.start:
        return ""
    return dataset.grid.before(target.window).key


def _plan_text(plan: WindowPlan) -> str:
    """A plan in one line: generation, tasks and rows of each source, and reasons for none."""
    parts = []
    for source in plan.sources.values():
        count = source.rows
        rows = "an unknown number of rows" if count is None else counted(count, "row")
        reason = f" ({source.reason})" if source.reason else ""
        parts.append(f"{source.source} {rows}{reason}")
    return f"generation {plan.generation}: " + ", ".join(parts)


def _event_text(judgement: Mapping[str, Any] | None) -> str:
    """Event scores, as far as there are any; an empty text where the window is not judged."""
    words = list(event_words(judgement or {}))
    return f"; event AUC: {', '.join(words)}" if words else ""


def _offset_text(
    chain: ModelChain, plan: WindowPlan, link: Link, judgement: Mapping[str, Any] | None
) -> str:
    """Offsets of the streams, declared and achieved; empty where no stream has one."""
    found = dict((judgement or {}).get("stream_offsets", {}))
    if "steps" in link.files:
        found = achieved_offsets(store_of(chain.home), plan, link)
    words = offset_words([found])
    return f"; offsets: {', '.join(words)}" if words else ""


def _not_known_text(link: Link) -> str:
    """Rows that were left out because their label came late; an empty text when there are none."""
    left_out = [
        f"{name} {read.label_not_known:,} of {read.rows:,}"
        for name, read in link.read.items()
        if read.label_not_known
    ]
    said = f"; rows not trained on because their label was not known in time: {', '.join(left_out)}"
    return (said if left_out else "") + "".join(_unsaid_texts(link))


def _unsaid_texts(link: Link) -> Iterator[str]:
    """The same for each of several labels: those rows were trained on for the others."""
    by_label: dict[str, list[str]] = {}
    for name, learnt in link.learnt.items():
        for label, rows in unsaid(learnt).items():
            text = f"{name} {rows:,} of {link.trained(name).rows:,}"
            by_label.setdefault(label, []).append(text)
    for label, shown in by_label.items():
        rows_of = ", ".join(shown)
        yield f"; rows not trained on for label {label}, null or not known in time: {rows_of}"


def _skipped_text(plan: WindowPlan) -> str:
    """Sources that the plan leaves out; an empty text when there are none."""
    skipped = [
        f"{source.source} ({source.reason.removeprefix(SKIPPED)})"
        for source in plan.sources.values()
        if source.reason.startswith(SKIPPED)
    ]
    return ", ".join(skipped)
