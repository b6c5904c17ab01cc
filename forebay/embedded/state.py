"""The state of the embedded Airflow, as its keeper writes it for everyone else."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from forebay.embedded.layout import Layout
from forebay.system.files.durable import write_atomically
from forebay.system.files.locks import is_held
from forebay.system.message import Message

ComponentState = Literal["waiting", "running", "restarting", "failed", "stopped"]
ClusterState = Literal["starting", "running", "failed", "stopping", "stopped", "lost"]


class ComponentStatus(Message):
    """One component: PostgreSQL or a part of Airflow.

    state: `failed` means that it ended too often and is not restarted.
    restarts: since the keeper started.
    """

    name: str
    pid: int | None = None
    state: ComponentState
    restarts: int = 0
    started_at: datetime | None = None


class ClusterStatus(Message):
    """All components.

    state: `lost` is never written; it means that the keeper died silently.
    doing: what a start waits for; empty once it is up.
    error: why it failed.
    sync_error: why DAG files could not be written last time.
    cancelled_jobs: ended by the last stop.
    seconds: wall time of each phase of the start.
    """

    state: ClusterState
    url: str
    user: str
    keeper_pid: int
    config_dirs: list[str]
    started_at: datetime
    doing: str = ""
    error: str | None = None
    sync_error: str | None = None
    components: list[ComponentStatus] = Field(default_factory=list)
    cancelled_jobs: list[str] = Field(default_factory=list)
    seconds: dict[str, float] = Field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether no keeper works on it any more."""
        return self.state in {"failed", "stopped", "lost"}


def write_status(layout: Layout, status: ClusterStatus) -> None:
    """Replace the status. Only the keeper does this."""
    write_atomically(layout.state, status.model_dump_json(indent=1))


def read_status(layout: Layout) -> ClusterStatus | None:
    """The current state; None if it never ran."""
    held = is_held(layout.keeper_lock)
    status = ClusterStatus.of_file(layout.state)
    if status is None or held or status.over:
        return status
    return status.model_copy(update={"state": "lost"})
