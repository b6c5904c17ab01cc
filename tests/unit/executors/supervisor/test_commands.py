"""Requests, command lines and environments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.toy_roles.jobs import ToyJobs

from forebay.config.specs.jobs import JobSpec
from forebay.errors import ConfigError, DataError, InfrastructureError, UsageError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest
from forebay.executors.roles.table import DATA, DRIVER, ROLES, TRAINER, Role
from forebay.executors.supervisor.commands import RoleCommand, RoleCommands, role_environment
from forebay.executors.supervisor.processes import role_policy
from forebay.home.paths import Home


@pytest.fixture
def request_of_ads(tmp_path: Path) -> JobRequest:
    return ToyJobs(Home(tmp_path), tmp_path / "plan").request()


def test_a_request_is_read_as_it_was_written(request_of_ads: JobRequest, tmp_path: Path) -> None:
    JobFolder(tmp_path).write(request_of_ads)
    assert JobFolder(tmp_path).request() == request_of_ads
    with pytest.raises(UsageError, match="no job"):
        JobFolder(tmp_path / "j9").request()


def test_commands() -> None:
    trainer = {"runtime": {"python": "/opt/tf/bin/python"}}
    spec = JobSpec.model_validate({"roles": {"trainer": trainer}})
    commands = RoleCommands(ROLES, spec, ("--job", "/home/j1"), 7)
    python, job = [sys.executable, "-P", "-m"], ("--job", "/home/j1")
    driver, data = commands.of("driver", 0), commands.of("data", 1)
    assert [*driver.interpreter, *driver.common] == [*python, DRIVER.module, *job, "--index", "0"]
    assert [*data.interpreter, *data.common] == [*python, DATA.module, *job, "--index", "1"]
    assert (driver.name, data.name) == ("driver-0", "data-1")
    trains = commands.of("trainer", 0)
    assert (trains.interpreter[0], trains.common[-2:]) == (
        "/opt/tf/bin/python",
        ("--lease-epoch", "7"),
    )


def test_attempts_ascend_over_starts_and_submissions() -> None:
    command = RoleCommand(DRIVER, 0, (), ("--index",))
    started = [command.arguments(*each) for each in [(1, 1), (1, 2), (1, 65_535), (2, 1)]]
    assert [each[:2] for each in started] == [("--index", "--attempt")] * 4
    attempts = [int(each[2]) for each in started]
    assert attempts == sorted(set(attempts))
    assert attempts[0] == 65_537
    with pytest.raises(InfrastructureError, match="driver-0 was started 65,535 times"):
        command.arguments(1, 65_536)


def test_the_environment_marks_the_job_and_keeps_users_tuning(request_of_ads: JobRequest) -> None:
    inherited = {"PATH": "/bin", "OMP_NUM_THREADS": "7", "FOREBAY_JOB_ID": "other", "TMPDIR": "/x"}
    environment = role_environment(inherited, request_of_ads, DATA, Path("/j1/temporary"))
    assert (environment["TMPDIR"], environment["FOREBAY_JOB_ID"]) == ("/j1/temporary", "j1")
    assert environment["FOREBAY_HOME"] == request_of_ads.home
    assert (environment["OMP_NUM_THREADS"], environment["ARROW_IO_THREADS"]) == ("7", "2")
    assert (environment["PATH"], environment["PYTHONUNBUFFERED"]) == ("/bin", "1")
    assert environment["MALLOC_TOP_PAD_"] == "67108864"
    assert environment["MIMALLOC_PURGE_DELAY"] == "-1"


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
