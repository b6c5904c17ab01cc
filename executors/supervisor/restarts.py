"""When a process of a job is started again."""

from __future__ import annotations

from forebay.errors import ConfigError, DataError, NotReadyError
from forebay.executors.job.request import Role
from forebay.system.restarts import RestartPolicy

# A wrong declaration is the same after a restart, and so is data that is bad or not there.
FATAL_CODES = frozenset({ConfigError.exit_code, NotReadyError.exit_code, DataError.exit_code})


def role_policy(role: Role, restarts_max: int) -> RestartPolicy:
    """Ends count for the whole run of a job, over all its supervisors.

    Only a trainer has an end of its own: driver and data executors serve until told to stop.
    """
    return RestartPolicy(
        restart="on_failure" if role == "trainer" else "always",
        restarts_max=restarts_max,
        delay_first_seconds=0.1,
        delay_max_seconds=2.0,
        fatal_codes=FATAL_CODES,
    )
