"""How a job's processes are restarted."""

from __future__ import annotations

import pytest

from forebay.errors import ConfigError, DataError, InfrastructureError
from forebay.executors.roles.table import DATA, DRIVER, ROLES, TRAINER, Role
from forebay.executors.supervisor.processes import role_policy


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("error", [ConfigError, DataError])
def test_bad_yaml_and_data_fail_at_once(role: Role, error: type[ConfigError | DataError]) -> None:
    assert role_policy(role, 8).decide(0, error.exit_code).action == "fail"


def test_only_a_trainer_may_end_well() -> None:
    actions = [role_policy(role, 8).decide(0, 0).action for role in (DRIVER, DATA)]
    assert actions == ["restart", "restart"]
    assert role_policy(TRAINER, 8).decide(0, 0).action == "ignore"
    assert role_policy(TRAINER, 8).decide(0, InfrastructureError.exit_code).action == "restart"


def test_delays_grow_and_ends_count_however_old_they_are() -> None:
    policy = role_policy(DATA, 8)
    delays = [policy.decide(ends, -9).delay_seconds for ends in range(6)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert policy.memory_seconds == float("inf")
