"""Command line and environment of each process of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay.config.role_environment import role_variables
from forebay.config.specs.jobs import JobSpec
from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.job.request import JobRequest
from forebay.executors.roles.table import Role
from forebay.home.paths import ENVIRONMENT_NAME
from forebay.system.processes.parent import JOB_ID_NAME

# Keep large freed blocks instead of faulting them in again for every message: large copies into
# TensorFlow and gRPC go several times faster. Must be set before a process starts.
_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**31),
    "MALLOC_TOP_PAD_": str(2**26),
    # The same for Arrow's allocator, which would return them to the kernel after 10 ms.
    "MIMALLOC_PURGE_DELAY": "-1",
}
_STARTS = 65_536  # more than a process is started under one supervisor


@dataclass(frozen=True)
class RoleCommand:
    """interpreter: what runs the role. common: arguments of all starts of a process."""

    role: Role
    index: int
    interpreter: tuple[str, ...]
    common: tuple[str, ...]

    @property
    def name(self) -> str:
        """`<role>-<index>`, as in the names of its files."""
        return f"{self.role.name}-{self.index}"

    def arguments(self, run_epoch: int, start: int) -> tuple[str, ...]:
        """For the role, of one start, counted from 1 under the supervisor of a submission.

        Attempts ascend over all submissions of a job, so nobody has to compare clocks.

        Raises:
            InfrastructureError: when the process was started too often.
        """
        if start >= _STARTS:
            raise InfrastructureError(
                f"{self.name} was started {start - 1:,} times: see in its log why, and run again"
            )
        return (*self.common, "--attempt", str(run_epoch * _STARTS + start))


class RoleCommands:
    """Commands of the processes of one job."""

    def __init__(
        self, table: Iterable[Role], spec: JobSpec, arguments: Sequence[str], lease_epoch: int
    ) -> None:
        """arguments: of the job's link. lease_epoch: of the line, for who trains it."""
        self._table = {role.name: role for role in table}
        self._spec = spec
        self._where = tuple(arguments)
        self._lease = ("--lease-epoch", str(lease_epoch))

    def of(self, name: str, index: int) -> RoleCommand:
        role = self._table.get(name)
        if role is None:
            raise ConfigError(f"role {name!r} is wanted of this job, but it is not installed here")
        # -P: a module beside the user's files must not shadow an installed one.
        python = role.settings(self._spec.roles).runtime.python or sys.executable
        interpreter = (python, "-P", "-m", role.module)
        lease = self._lease if role.trains_line else ()
        return RoleCommand(role, index, interpreter, (*self._where, "--index", str(index), *lease))


def role_environment(
    environ: Mapping[str, str], request: JobRequest, role: Role, temporary: Path
) -> dict[str, str]:
    """Environment of a role: inherited from the supervisor, the marks of the job, and tuning.

    Tuning that the user has set is kept. temporary: where its temporary files go.
    """
    job = request.pipeline_spec().job
    threads = str(role.settings(job.roles).threads)
    tuning = {
        **_MALLOC,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OMP_NUM_THREADS": threads,  # Arrow's pool for decoding takes its size from it
        "ARROW_IO_THREADS": threads,
        "OPENBLAS_NUM_THREADS": "1",
    }
    marks = {
        JOB_ID_NAME: request.job_id,
        ENVIRONMENT_NAME: request.home,
        "TMPDIR": str(temporary),
        "PYTHONUNBUFFERED": "1",
    }
    runtime = role.settings(job.roles).runtime
    return {
        **tuning,
        **role_variables(role.access, environ, runtime, request.pipeline, request.sources),
        **marks,
    }
