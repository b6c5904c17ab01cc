"""When a process of a job is started again."""

from __future__ import annotations

from forebay.errors import ConfigError, DataError, NotReadyError
from forebay.executors.job.request import Role
from forebay.system.restarts import RestartPolicy

# A restart does not change a wrong declaration, or bad or missing data.
FATAL_CODES = frozenset({ConfigError.exit_code, NotReadyError.exit_code, DataError.exit_code})


def role_policy(role: Role, restarts_max: int) -> RestartPolicy:
    """Ends are counted over the whole run of a job and all its supervisors.

    Only a trainer ends by itself: driver and data executors serve until they are stopped.
    """
    return RestartPolicy(
        restart="on_failure" if role == "trainer" else "always",
        restarts_max=restarts_max,
        delay_first_seconds=0.1,
        delay_max_seconds=2.0,
        fatal_codes=FATAL_CODES,
    )
