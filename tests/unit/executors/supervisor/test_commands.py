"""Requests, command lines and environments."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.toy_roles.jobs import ToyJobs

from forebay.config.specs.jobs import JobSpec
from forebay.errors import ConfigError, DataError, InfrastructureError, UsageError
from forebay.executors.job.request import JobRequest, Role
from forebay.executors.planes.base import Launch
from forebay.executors.planes.local import LocalPlane
from forebay.executors.supervisor.commands import ROLE_MODULES, role_commands, role_environment
from forebay.executors.supervisor.processes import role_policy
from forebay.home.paths import Home


@pytest.fixture
def request_of_ads(tmp_path: Path) -> JobRequest:
    return ToyJobs(Home(tmp_path), tmp_path / "plan").request()


def test_a_request_is_read_as_it_was_written(request_of_ads: JobRequest, tmp_path: Path) -> None:
    request_of_ads.write(tmp_path)
    assert JobRequest.read(tmp_path) == request_of_ads
    with pytest.raises(UsageError, match="no job"):
        JobRequest.read(tmp_path / "j9")


def test_commands() -> None:
    trainer = {"runtime": {"python": "/opt/tf/bin/python"}}
    roles = {"data": {"count": 2, "threads": 3}, "trainer": trainer}
    spec = JobSpec.model_validate({"roles": roles})
    commands = role_commands(spec, Path("/home/j1"), 7)
    assert [command.name for command in commands] == ["driver-0", "data-0", "data-1", "trainer-0"]
    python = [sys.executable, "-P", "-m"]
    job = ("--job", "/home/j1")
    assert list(commands[0].command) == [*python, ROLE_MODULES["driver"], *job]
    assert list(commands[2].command) == [*python, ROLE_MODULES["data"], *job, "--index", "1"]
    assert commands[3].command[0] == "/opt/tf/bin/python"
    assert (commands[3].command[-2:], commands[1].threads) == (("--lease-epoch", "7"), 3)


def test_the_environment_marks_the_job_and_keeps_users_tuning(request_of_ads: JobRequest) -> None:
    inherited = {"PATH": "/bin", "OMP_NUM_THREADS": "7", "FOREBAY_JOB_ID": "other", "TMPDIR": "/x"}
    environment = role_environment(inherited, request_of_ads, "data", 2, Path("/j1/temporary"))
    assert (environment["TMPDIR"], environment["FOREBAY_JOB_ID"]) == ("/j1/temporary", "j1")
    assert environment["FOREBAY_HOME"] == request_of_ads.home
    assert (environment["OMP_NUM_THREADS"], environment["ARROW_IO_THREADS"]) == ("7", "2")
    assert (environment["PATH"], environment["PYTHONUNBUFFERED"]) == ("/bin", "1")
    assert environment["MALLOC_TOP_PAD_"] == "67108864"
    assert environment["MIMALLOC_PURGE_DELAY"] == "-1"


@pytest.mark.parametrize("role", ["driver", "data", "trainer"])
@pytest.mark.parametrize("error", [ConfigError, DataError])
def test_bad_yaml_and_data_fail_at_once(role: Role, error: type[ConfigError | DataError]) -> None:
    assert role_policy(role, 8).decide(0, error.exit_code).action == "fail"


def test_only_a_trainer_may_end_well() -> None:
    actions = {role: role_policy(role, 8).decide(0, 0).action for role in ("driver", "data")}
    assert actions == {"driver": "restart", "data": "restart"}
    assert role_policy("trainer", 8).decide(0, 0).action == "ignore"
    assert role_policy("trainer", 8).decide(0, InfrastructureError.exit_code).action == "restart"


def test_delays_grow_and_ends_count_however_old_they_are() -> None:
    policy = role_policy("data", 8)
    delays = [policy.decide(ends, -9).delay_seconds for ends in range(6)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert policy.memory_seconds == float("inf")


DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


@pytest.fixture
def plane() -> Iterator[LocalPlane]:
    plane = LocalPlane()
    yield plane
    plane.stop(0)


def launch(log: Path, *command: str, index: int = 0) -> Launch:
    return Launch("data", index, command, dict(os.environ), log)


def test_stop_asks_first_and_insists_later(plane: LocalPlane, tmp_path: Path) -> None:
    polite = plane.start(launch(tmp_path / "a", "sleep", "60"))
    deaf = plane.start(launch(tmp_path / "b", sys.executable, "-c", DEAF, index=1))
    while not (tmp_path / "b").read_text():
        time.sleep(0.01)
    plane.stop(0.3)
    assert (polite.poll(), deaf.poll()) == (-15, -9)


@pytest.mark.parametrize("program", ["/no/such/python", "/etc/passwd", "/etc/passwd/python"])
def test_an_interpreter_that_cannot_be_run(plane: LocalPlane, tmp_path: Path, program: str) -> None:
    with pytest.raises(ConfigError, match="interpreter of role data cannot be run"):
        plane.start(launch(tmp_path / "a", program))
