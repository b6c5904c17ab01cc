"""Requests, command lines and environments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.toy_roles.jobs import ToyJobs

from forebay.config.specs.jobs import JobSpec
from forebay.errors import UsageError
from forebay.executors.job.request import JobRequest
from forebay.executors.supervisor.commands import ROLE_MODULES, role_commands, role_environment
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
