"""Command line and environment of each process of a job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forebay.config.role_environment import role_variables
from forebay.config.specs.jobs import JobSpec, RoleSpec
from forebay.executors.job.request import JobRequest, Role
from forebay.home.paths import ENVIRONMENT_NAME
from forebay.system.processes.parent import JOB_ID_NAME

ROLE_MODULES: Mapping[Role, str] = {
    "driver": "forebay.executors.driver",
    "data": "forebay.executors.data_executor",
    "trainer": "forebay.executors.trainer",
}
# Keep large freed blocks instead of faulting them in again for every message: large copies into
# TensorFlow and gRPC go several times faster. Must be set before a process starts.
_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**31),
    "MALLOC_TOP_PAD_": str(2**26),
    # The same for Arrow's allocator, which would return them to the kernel after 10 ms.
    "MIMALLOC_PURGE_DELAY": "-1",
}


@dataclass(frozen=True)
class RoleCommand:
    role: Role
    index: int
    command: tuple[str, ...]
    threads: int

    @property
    def name(self) -> str:
        """`<role>-<index>`, as in the names of its files."""
        return f"{self.role}-{self.index}"


def role_commands(
    spec: JobSpec, job_dir: Path, lease_epoch: int, modules: Mapping[Role, str] = ROLE_MODULES
) -> list[RoleCommand]:
    """All processes of a job, in their starting order. The driver is a data role.

    lease_epoch: the trainer's; every change that it makes to its line is checked against it.
    """

    def command(role: Role, index: int, spec: RoleSpec, *more: str) -> RoleCommand:
        # -P: a module beside the user's files must not shadow an installed one.
        start = (spec.runtime.python or sys.executable, "-P", "-m", modules[role])
        return RoleCommand(role, index, (*start, "--job", str(job_dir), *more), spec.threads)

    data, trainer = spec.roles.data, spec.roles.trainer
    return [
        command("driver", 0, data),
        *(command("data", index, data, "--index", str(index)) for index in range(data.count)),
        command("trainer", 0, trainer, "--lease-epoch", str(lease_epoch)),
    ]


def role_environment(
    environ: Mapping[str, str], request: JobRequest, role: Role, threads: int, temporary: Path
) -> dict[str, str]:
    """Environment of a role: inherited from the supervisor, the marks of the job, and tuning.

    Tuning that the user has set is kept. temporary: where its temporary files go.
    """
    tuning = {
        **_MALLOC,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OMP_NUM_THREADS": str(threads),  # Arrow's pool for decoding takes its size from it
        "ARROW_IO_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
    }
    marks = {
        JOB_ID_NAME: request.job_id,
        ENVIRONMENT_NAME: request.home,
        "TMPDIR": str(temporary),
        "PYTHONUNBUFFERED": "1",
    }
    job = request.pipeline_spec().job
    return {
        **tuning,
        **role_variables(role, environ, job, request.pipeline, request.sources),
        **marks,
    }
