"""How a job's end is told: its own error and where its logs lie, or what it has trained."""

from __future__ import annotations

from forebay.errors import InfrastructureError, UsageError
from forebay.executors.job.request import JobStatus
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.operators.runs.xcoms import TrainedWindow


def raise_for_end(status: JobStatus, logs: str) -> None:
    """Nothing for a job that is on its way or has succeeded.

    Raises:
        ForebayError: the job's own error, by its remedy, with the path of its logs.
    """
    if status.state == "failed":
        if status.error is None:
            raise InfrastructureError(f"job {status.job_id} failed; logs: {logs}")
        error = status.error.exception()
        # A missing package or a bug is infrastructure's, but no attempt cures it.
        kind = UsageError if status.error.final else type(error)
        raise kind(f"job {status.job_id} failed: {error}\nlogs: {logs}")
    if status.state == "cancelled":
        raise UsageError(
            f"job {status.job_id} was cancelled: clear this task to train the window\nlogs: {logs}"
        )
    if status.state == "lost":
        raise InfrastructureError(f"job {status.job_id} lost its supervisor; logs: {logs}")


def trained_summary(
    home: Home, pipeline: str, line: str, window: str, generation: int, status: JobStatus | None
) -> TrainedWindow:
    """What a finished window holds, by the model's own sums.

    Raises:
        InfrastructureError: when the job ended well and the window is not there.
    """
    chain = ModelChain(home, pipeline, line)
    link = chain.link(window, generation)
    if link is None:
        raise InfrastructureError(f"window {window} is not trained in generation {generation}")
    return TrainedWindow(
        window=window,
        generation=generation,
        job_id=status.job_id if status is not None else "",
        rows={source: link.trained(source).rows for source in link.seen},
        steps=link.steps,
        seconds=_seconds(status),
    )


def _seconds(status: JobStatus | None) -> float:
    if status is None or status.started_at is None or status.ended_at is None:
        return 0.0
    return round((status.ended_at - status.started_at).total_seconds(), 3)
