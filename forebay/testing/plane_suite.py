"""The contract of a plane as one test class.

Test one from another package like this:

    class TestBatchSystem(PlaneSuite):
        def make(self, job: str) -> Plane:
            return BatchSystemPlane(job)

A plane that can limit memory or CPU here is held to it; one that cannot has to say why.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from forebay.errors import ConfigError
from forebay.executors.planes.base import EndReason, Execution, Launch, Plane
from forebay.executors.roles.resources import UNLIMITED, Resources

MIB = 2**20
SECONDS = 20.0
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""
HOLDS = """
import time
held = bytes(range(256)) * 4096 * {mib}
print("held", flush=True)
time.sleep(60)
"""
SPINS = "print('spins', flush=True)\nwhile True: pass"


class PlaneSuite(ABC):
    @abstractmethod
    def make(self, job: str) -> Plane:
        """A plane of a job of this name, in a process that has other children too."""

    @pytest.fixture
    def plane(self, tmp_path: Path) -> Iterator[Plane]:
        plane = self.make(f"job:{tmp_path.name}")
        yield plane
        plane.stop(0)

    @pytest.fixture
    def start(self, plane: Plane, tmp_path: Path) -> Callable[..., Execution]:
        def start(*command: str, index: int = 0, limits: Resources = UNLIMITED) -> Execution:
            environment = {"PATH": os.environ["PATH"], "SEEN": "yes"}
            log = tmp_path / f"{index}.log"
            return plane.start(Launch("data", index, command, environment, log, limits))

        return start

    def test_an_end_is_seen_and_its_reason_told(self, start: Callable[..., Execution]) -> None:
        first = start("sh", "-c", "exit 7")
        second = start("sleep", "60", index=1)
        assert (_code_of(first), first.ended().reason) == (7, EndReason.EXIT)
        assert second.poll() is None
        second.identity.signal(signal.SIGKILL)
        assert (_code_of(second), second.ended().reason) == (-9, EndReason.SIGNAL)
        assert (first.poll(), first.ended().exit_code) == (7, 7)

    def test_logs_grow_and_nothing_but_the_given_environment_is_there(
        self, start: Callable[..., Execution], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OTHERS_TOKEN", "secret")
        for _ in range(2):
            _code_of(start("sh", "-c", 'echo "$SEEN$OTHERS_TOKEN"; echo wrong >&2'))
        assert sorted((tmp_path / "0.log").read_text().split()) == ["wrong", "wrong", "yes", "yes"]

    @pytest.mark.parametrize("program", ["/no/such/python", "/etc/passwd", "/etc/passwd/python"])
    def test_an_interpreter_that_cannot_be_run(
        self, start: Callable[..., Execution], program: str
    ) -> None:
        with pytest.raises(ConfigError, match="interpreter of role data cannot be run"):
            start(program)

    def test_stop_asks_first_and_insists_later(
        self, plane: Plane, start: Callable[..., Execution], tmp_path: Path
    ) -> None:
        polite, deaf = start("sleep", "60"), start(sys.executable, "-c", DEAF, index=1)
        _wait_for(tmp_path / "1.log")
        plane.stop(0.3)
        assert (polite.poll(), deaf.poll()) == (-15, -9)

    def test_one_process_is_ended_alone(
        self, start: Callable[..., Execution], tmp_path: Path
    ) -> None:
        other, deaf = start("sleep", "60"), start(sys.executable, "-c", DEAF, index=1)
        _wait_for(tmp_path / "1.log")
        began = time.monotonic()
        deaf.end(0.3)
        assert time.monotonic() - began < 0.2
        assert (_code_of(deaf), other.poll()) == (-9, None)

    def test_usage_is_what_the_kernel_counts(
        self, start: Callable[..., Execution], tmp_path: Path
    ) -> None:
        one = start(sys.executable, "-c", SPINS)
        _wait_for(tmp_path / "0.log")
        time.sleep(1.0)
        used, process = one.usage(), psutil.Process(one.identity.pid)
        assert used is not None
        times = process.cpu_times()
        if used.cpu_seconds is not None:
            assert used.cpu_seconds == pytest.approx(times.user + times.system, rel=0.05, abs=0.05)
        if used.memory_bytes is not None:
            assert used.memory_bytes == pytest.approx(process.memory_info().rss, rel=0.05)
        one.end(0)
        _code_of(one)
        assert one.usage() is None

    def test_want_of_memory_is_told_or_cannot_be(self, start: Callable[..., Execution]) -> None:
        one = start(sys.executable, "-c", HOLDS.format(mib=200), limits=_memory(64))
        if one.limits.outcome != "applied":
            assert one.limits.reason
            return
        assert (_code_of(one), one.ended().reason) == (-9, EndReason.OOM)
        assert one.ended().detail == "peak 64 MiB of 64 MiB"

    def test_limits_change_while_it_runs_but_memory_not_to_less_than_is_used(
        self, start: Callable[..., Execution], tmp_path: Path
    ) -> None:
        one = start(sys.executable, "-c", HOLDS.format(mib=100), limits=_memory(300))
        _wait_for(tmp_path / "0.log")
        if one.limits.outcome != "applied":
            assert one.resize(_memory(400)).reason
            return
        for mib in (400, 200, 500):
            assert one.resize(_memory(mib)).outcome == "applied"
        refused = one.resize(_memory(50))
        assert refused.outcome == "infeasible"
        assert refused.reason
        assert one.resize(UNLIMITED).outcome == "applied"
        assert one.poll() is None

    def test_a_quota_of_cpu_holds(self, start: Callable[..., Execution], tmp_path: Path) -> None:
        one = start(sys.executable, "-c", SPINS, limits=Resources(cpu_cores=0.5))
        _wait_for(tmp_path / "0.log")
        if one.limits.outcome != "applied":
            assert one.limits.reason
            return
        process = psutil.Process(one.identity.pid)
        before, began = sum(process.cpu_times()[:2]), time.monotonic()
        time.sleep(2.0)
        took = sum(process.cpu_times()[:2]) - before
        assert took <= 0.55 * (time.monotonic() - began)


def _memory(mib: int) -> Resources:
    return Resources(memory_bytes=mib * MIB)


def _code_of(execution: Execution) -> int:
    deadline = time.monotonic() + SECONDS
    while (code := execution.poll()) is None:
        assert time.monotonic() < deadline, "it has not ended"
        time.sleep(0.01)
    return code


def _wait_for(log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not log.read_text():
        assert time.monotonic() < deadline, "it has written nothing"
        time.sleep(0.01)
