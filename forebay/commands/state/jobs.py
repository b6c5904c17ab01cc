"""`forebay jobs …`: running and finished jobs, their state and logs, and lines that are paused."""

from __future__ import annotations

import shlex
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.commands.shared import arguments, complete
from forebay.commands.shared.known_pipeline import require_known
from forebay.commands.shared.output import (
    INTERRUPTED,
    Form,
    Output,
    OutputFormat,
    instant,
    is_terminal,
    note,
    option,
)
from forebay.config.specs.base import format_mib
from forebay.config.yaml.spelling import nearest
from forebay.errors import InfrastructureError, UsageError
from forebay.home.paths import DEFAULT_LINE
from forebay.system.names import is_name

if TYPE_CHECKING:
    from forebay.executors.job.stored_jobs import StoredJob
    from forebay.executors.model_line.chain import ModelChain
    from forebay.system.output.process_log import LogTail

POLL_SECONDS = 0.25
# The state is read less often than the files: it may be in a database on another host.
STATE_SECONDS = 1.0
TOP_SECONDS = 2.0
_COLUMNS = ("job", "state", "windows", "submitted", "took")
_LOG_FILES_MAX = 1_000

JobId = Annotated[
    str,
    typer.Argument(
        help="A job's id, or a pipeline's name for its newest job.",
        metavar="JOB",
        autocompletion=complete.job_ids,
    ),
]
group = typer.Typer(help="Running and finished jobs.", no_args_is_help=True)


@group.command()
def ls(
    pipeline: arguments.OnePipeline = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.OneLine = None,
    jobs_max: Annotated[
        int, option("--jobs-max", help="Show at most this many.", min=1, max=10_000)
    ] = 20,
    output: Form = OutputFormat.TEXT,
) -> None:
    """List the newest jobs of all pipelines, or of one."""
    from forebay.executors.job.stored_jobs import newest_jobs
    from forebay.home.database.format import open_home

    if line is not None and pipeline is None:
        raise UsageError(f"--line {line}: name the pipeline too, as in `forebay jobs ls PIPELINE`")
    home = open_home()
    found, count = newest_jobs(home, pipeline, line, jobs_max)
    if pipeline is not None and not found:
        require_known(home, pipeline, config, line)
    now = datetime.now(UTC)
    shown = Output(output)
    if not found and not shown.is_json:
        of = "" if pipeline is None else f" of pipeline {pipeline!r}"
        shown.line(f"no jobs{of}" + (f" on line {line!r}" if line else ""))
        return
    columns = _COLUMNS if shown.is_json else [name for name in _COLUMNS if name != "windows"]
    shown.table([_row(job, now, exact=shown.is_json) for job in found], columns)
    if count > len(found):
        note(f"… and {count - len(found)} older (--jobs-max)")


@group.command()
def runners(
    end: Annotated[
        bool, option("--end", help="End those that run no job; the next window starts anew.")
    ] = False,
    output: Form = OutputFormat.TEXT,
) -> None:
    """List lines whose processes stay, on this host."""
    from forebay.executors.job.runners import Call, end_runner, look_at, runners_of
    from forebay.home.database.format import open_home
    from forebay.system.files.locks import is_held
    from forebay.system.files.private_socket import lock_of

    shown, rows = Output(output), list[dict[str, int | str]]()
    for line, place in runners_of(open_home()).items():
        found = look_at(place, Call(ask="look"))
        if found is None and not is_held(lock_of(place.folder).path):
            continue
        if found is None:
            rows.append({"line": line, "state": "does not answer", "memory": ""})
            continue
        memory = found.memory_bytes if shown.is_json else format_mib(found.memory_bytes)
        state = f"runs {found.job}" if found.job else f"idle for {found.idle_seconds:.0f} s"
        if end and not end_runner(place):
            state = "ended"
        rows.append({"line": line, "state": state, "memory": memory})
    if not rows and not shown.is_json:
        shown.line("no line has processes that stay (job.process: standing)")
        return
    shown.table(rows, ("line", "state", "memory"))


@group.command()
def show(job: JobId, output: Form = OutputFormat.TEXT) -> None:
    """Show one job: its windows, its progress, why it ended."""
    found = _job(job)
    shown = Output(output)
    if shown.is_json:
        shown.json(_facts(found))
        return
    for name, text in _told(found):
        shown.line(f"{name:<10} {text}")


@group.command()
def logs(
    job: JobId,
    follow: Annotated[
        bool, option("--follow", "-f", help="Show new lines until the job ends.")
    ] = False,
    process: Annotated[
        str | None,
        option("--process", help="Only this one, such as trainer-0.", callback=arguments.name),
    ] = None,
    lines: Annotated[
        int,
        option(
            "--lines",
            help="Last lines of each process.",
            variable="FOREBAY_LOG_LINES",
            min=0,
            max=10_000,
        ),
    ] = 50,
) -> None:
    """Show what the processes of a job have written.

    The last lines of each process come first. With -f, new lines of all processes follow as they
    are written, until the job ends. Ctrl-C does not stop the job.
    """
    found = _job(job)
    if not found.is_here:
        raise UsageError(f"job {found.job_id} belongs to another host: its logs are there")
    followed = _Logs(found, process)
    try:
        followed.show_last(lines)
        if follow:
            state = followed.follow()
            note(f"job {found.job_id} {_ENDS.get(state, state).format(job=found.job_id)}")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


@group.command()
def top(job: JobId, output: Form = OutputFormat.TEXT) -> None:
    """Show what holds a job back, and what its processes use.

    Until it ends, or Ctrl-C. Where this is not a terminal, and as JSON, it is shown once.
    """
    from forebay.executors.job.stored_jobs import stored_job

    found = _job(job)
    if not found.is_here:
        raise UsageError(f"job {found.job_id} belongs to another host: what it uses is seen there")
    shown = Output(output)
    if shown.is_json or not is_terminal():
        _show_measure(found, shown)
        return
    try:
        while True:
            shown.clear()
            _show_measure(found, shown)
            if not stored_job(found.home, found.job_id).status.is_active:
                return
            time.sleep(TOP_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _show_measure(job: StoredJob, shown: Output) -> None:
    from forebay.config.specs.base import format_mib

    found = job.host.measure(job.job_id)
    if shown.is_json:
        shown.json(None if found is None else found.model_dump(mode="json"))
        return
    if found is None:
        shown.line(f"job {job.job_id}: nothing is measured yet")
        return
    word, figure = found.bottleneck
    phases = _shares(found.phases)
    rows = ", ".join(f"{name} {rate:,.0f}" for name, rate in found.rows_per_second.items())
    seconds = f"the {found.interval_seconds:.0f} s to {found.at:%H:%M:%S}Z"
    shown.line(f"job         {job.job_id}, {job.status.state}: {seconds}")
    shown.line(f"bottleneck  {word}: {figure}")
    shown.line(f"trainer     {phases or '-'}")
    shown.line(f"rows/s      {rows or '-'}")
    progress = job.host.progress(job.job_id)
    for name, lag in ({} if progress is None else progress.lags).items():
        shown.line(f"lag         {name}: {lag.text}")
    rows_of = [
        {
            "process": name,
            "cores": each.cpu_cores,
            "throttled": None if each.throttled_share is None else f"{each.throttled_share:.0%}",
            "memory": None if each.memory_bytes is None else format_mib(each.memory_bytes),
            "peak": None if each.memory_peak_bytes is None else format_mib(each.memory_peak_bytes),
            "time": _shares(each.phases) or None,
        }
        for name, each in found.processes.items()
    ]
    shown.table(rows_of, ["process", "cores", "throttled", "memory", "peak", "time"])


def _shares(phases: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in phases.items())


@group.command()
def resize(
    job: JobId,
    role: Annotated[
        str,
        typer.Argument(help="driver, data or trainer.", metavar="ROLE", callback=arguments.name),
    ],
    limits: Annotated[
        list[str],
        typer.Argument(help="cpu=CORES, memory=2GiB; none lifts a limit.", metavar="LIMIT"),
    ],
) -> None:
    """Limit processes of a job while it runs, until it ends.

    The pipeline's job.roles.data and job.roles.trainer say what the next job begins with.
    """
    from forebay.executors.job.handle import resize as resize_job

    found = _job(job)
    unmet = resize_job(found, role, _limits(limits))
    for name, why in unmet.items():
        note(f"{name}: {why}")
    if unmet:
        raise InfrastructureError(
            f"not all limits of {role} hold in job {found.job_id} yet: they do in its processes "
            "that start from now on, until it is resized again"
        )
    Output(OutputFormat.TEXT).line(f"{role} of job {found.job_id}: {' '.join(limits)}")


@group.command()
def pause(
    pipeline: arguments.PipelineName,
    why: Annotated[
        str | None,
        option("--why", help="Why, for who follows the line.", callback=arguments.one_line),
    ] = None,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Stop who follows a line, until `resume`.

    That is `forebay run --follow`, or `forebay up` in its place. The window that goes on stops at
    its newest checkpoint. Other commands may train the line.
    """
    from forebay.executors.model_line.rows.pause_rows import BY_PEOPLE

    chain = _line(pipeline, line)
    chain.pause(BY_PEOPLE, why or "")
    shown = Output(OutputFormat.TEXT)
    shown.line(f"line {line!r} of {pipeline} is paused for who follows it, until `resume`")


@group.command()
def resume(
    pipeline: arguments.PipelineName, line: arguments.LineName = arguments.DEFAULT_LINE
) -> None:
    """Let a line be followed again.

    First the windows that were missed, then the one that goes on.
    """
    from forebay.executors.model_line.rows.pause_rows import BY_PEOPLE

    if not _line(pipeline, line).resume(BY_PEOPLE):
        note("note: it was not paused")
    Output(OutputFormat.TEXT).line(f"line {line!r} of {pipeline} is followed again")


def _line(pipeline: str, line: str) -> ModelChain:
    from forebay.executors.model_line.chain import ModelChain
    from forebay.home.database.format import open_home

    home = open_home()
    require_known(home, pipeline, arguments.DEFAULT_CONFIG, line)
    return ModelChain(home, pipeline, line)


def _limits(texts: list[str]) -> dict[str, float | None]:
    """Fields of `Resources`, from KEY=VALUE."""
    from pydantic import ValidationError

    from forebay.config.specs.jobs import RoleSpec

    found: dict[str, float | None] = {}
    for text in texts:
        key, _, value = text.partition("=")
        field = {"cpu": "cpu_cores", "memory": "memory_bytes"}.get(key)
        if field is None or not value or field in found:
            raise UsageError(f"{text!r}: write cpu=CORES or memory=2GiB, each once")
        try:
            spec = RoleSpec.model_validate({key: None if value == "none" else value})
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"{text}: {why}") from error
        found[field] = getattr(spec, key)
    return found


class _Logs:
    """The log files of a job: more appear while its processes start."""

    def __init__(self, job: StoredJob, process: str | None) -> None:
        """Raises UsageError when the job has ended and has no logs, or none of the process."""
        self._job = job
        self._process = process
        self._folder = job.host.logs(job.job_id)
        self._tails: dict[str, LogTail] = {}
        self._output = Output(OutputFormat.TEXT)
        self._look()
        if not self._tails and not job.row.is_active:
            there = ", ".join(sorted(path.stem for path in self._folder.glob("*.log")))
            if there:
                raise UsageError(f"job {job.job_id} has no process {process!r}. It has: {there}")
            raise UsageError(f"job {job.job_id} no longer has logs: {self._folder}")

    def show_last(self, lines: int) -> None:
        for name, tail in self._tails.items():
            self._print(name, tail.last(lines))

    def follow(self) -> str:
        """Print lines as they are added, until the job has ended. Returns its state."""
        from forebay.executors.job.stored_jobs import stored_job

        asked_at = 0.0
        while True:
            over = False
            if time.monotonic() - asked_at >= STATE_SECONDS:
                status = stored_job(self._job.home, self._job.job_id).status
                over, asked_at = not status.is_active, time.monotonic()
            self._look()
            # After reading the state: if over, nothing more is added.
            added = [self._print(name, list(tail.added())) for name, tail in self._tails.items()]
            if over and not any(added):
                for name, tail in self._tails.items():
                    if rest := tail.rest():
                        self._print(name, [rest])
                return status.state
            if not any(added):
                time.sleep(POLL_SECONDS)

    def _print(self, name: str, lines: list[str]) -> bool:
        for line in lines:
            self._output.line(f"{name:<12} {line}")
        return bool(lines)

    def _look(self) -> None:
        from forebay.system.output.process_log import LogTail

        for path in sorted(self._folder.glob("*.log")):
            wanted = self._process in {None, path.stem}
            if wanted and path.stem not in self._tails and len(self._tails) < _LOG_FILES_MAX:
                self._tails[path.stem] = LogTail(path)


_ENDS = {
    "succeeded": "has succeeded",
    "failed": "has failed: `forebay jobs show {job}` says why",
    "cancelled": "was cancelled",
    "lost": "lost its supervisor: run its windows again, to continue from the newest checkpoint",
}


def _job(text: str) -> StoredJob:
    """The job that an id or a pipeline's name refers to.

    Raises:
        UsageError: when the text is neither an id nor a name, or when there is no such job.
    """
    from forebay.executors.job.stored_jobs import newest_jobs, stored_job
    from forebay.home.database.format import open_home
    from forebay.home.database.recorded import recorded_pipelines

    home = open_home()
    if not is_name(text):  # an id contains dots, a name does not
        home.job(text)  # rejects a text that cannot be an id
        return stored_job(home, text)
    found, _ = newest_jobs(home, text, None, 1)
    if not found:
        guess = nearest(text, recorded_pipelines(home) - {text})
        way_out = f"did you mean {guess}?" if guess else "see `forebay jobs ls`"
        raise UsageError(f"pipeline {text!r} has no job in {home.root} ({way_out})")
    return found[0]


def _row(job: StoredJob, now: datetime, *, exact: bool) -> dict[str, Any]:
    status = job.status
    at, took = status.submitted_at, _seconds(job, now)
    return {
        "job": job.job_id,
        "state": status.state,
        "windows": len(job.windows),
        "submitted": at if exact else instant(at.replace(second=0, microsecond=0)),
        "took": took if exact or took is None else str(timedelta(seconds=round(took))),
    }


def _seconds(job: StoredJob, now: datetime) -> float | None:
    """From the start to the end, or until now; None if the job has not started or was lost."""
    status = job.status
    if status.started_at is None or status.state == "lost":
        return None
    return ((status.ended_at or now) - status.started_at).total_seconds()


def _facts(job: StoredJob) -> dict[str, Any]:
    progress = job.progress
    return {
        "pipeline": job.row.pipeline,
        "line": job.row.line,
        "windows": [each._asdict() for each in job.windows],
        "here": job.is_here,
        "logs": str(job.host.logs(job.job_id)) if job.is_here else None,
        "status": job.status.model_dump(mode="json"),
        "progress": progress.model_dump(mode="json") if progress else None,
    }


def _told(job: StoredJob) -> list[tuple[str, str]]:
    status, windows = job.status, job.windows
    keys = [each.key for each in windows]
    count = f"{len(keys)} windows, {keys[0]} to {keys[-1]}" if len(keys) > 1 else "".join(keys)
    told = [
        ("job", job.job_id),
        ("pipeline", f"{job.row.pipeline}, line {job.row.line}"),
        ("windows", count),
        ("state", status.state),
        ("submitted", instant(status.submitted_at.replace(microsecond=0))),
    ]
    if (took := _seconds(job, datetime.now(UTC))) is not None:
        told.append(("took", str(timedelta(seconds=round(took)))))
    if progress := job.progress:
        told.append(("progress", _progress(progress)))
    restarts = ", ".join(f"{role} {n}" for role, n in status.restarts.items() if n)
    told.append(("restarts", restarts or "none"))
    told += [("hung", text) for text in status.hung]
    told += [("limits", f"{name}: {why}") for name, why in status.unmet.items()]
    if status.error is not None:
        told.append(("error", f"{status.error.error}: {status.error.message}"))
    told.append(("logs", f"forebay jobs logs {job.job_id}" if job.is_here else "on another host"))
    if status.is_active:
        line = () if job.row.line == DEFAULT_LINE else ("--line", job.row.line)
        told.append(("to end it", shlex.join(["forebay", "cancel", job.row.pipeline, *line])))
    return told


def _progress(progress: Any) -> str:  # noqa: ANN401 - imported late
    rows = ", ".join(f"{name} {count:,}" for name, count in progress.rows.items())
    return (
        f"{progress.windows_done} of {progress.windows_total} windows, step {progress.step:,}"
        + (f", rows {rows}" if rows else "")
    )
