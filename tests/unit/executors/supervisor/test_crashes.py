"""Which ends of a data executor count against its restarts."""

from __future__ import annotations

import signal
from pathlib import Path

from support.letters import task
from support.there import there

from forebay.datatasks.tasks import DataTask, Position
from forebay.executors.job.folder import JobFolder
from forebay.executors.planes.base import Ended, EndReason
from forebay.executors.roles import table as roles
from forebay.executors.supervisor.commands import RoleCommand
from forebay.executors.supervisor.processes import ExaminedCrashes

DATA = RoleCommand(roles.DATA, 0, (), ())


def died(
    crashes: ExaminedCrashes,
    job: Path,
    number: int = signal.SIGABRT,
    command: RoleCommand = DATA,
    *,
    hung: bool = False,
    of: DataTask | None = None,
    reason: EndReason = EndReason.SIGNAL,
) -> bool:
    crashes.starts(command)
    decoding = JobFolder(job).suspicions.mark(0, of or task()).decoding(Position(1, 0))
    decoding.__enter__()  # and it never leaves
    return crashes.is_examined(command, Ended(reason, -number), hung=hung)


def examined(job: Path, *, found: bool) -> None:
    suspicions = JobFolder(job).suspicions
    suspicion = there(suspicions.of(task()))
    if found:
        suspicions.explain(suspicion)
    suspicions.drop(task())


def test_ends_that_are_explained_never_count(tmp_path: Path) -> None:
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    for _ in range(5):
        assert died(crashes, tmp_path)
        examined(tmp_path, found=True)


def test_of_ends_that_nothing_explains_all_but_one_count(tmp_path: Path) -> None:
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    assert died(crashes, tmp_path)
    for _ in range(3):
        examined(tmp_path, found=False)
        assert not died(crashes, tmp_path)
    for _ in range(3):
        examined(tmp_path, found=True)
        assert died(crashes, tmp_path), "what was in vain before is paid for"


def test_an_end_while_another_is_looked_into_is_its_own(tmp_path: Path) -> None:
    """Two tasks with a poison each: one data executor dies of both."""
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    assert died(crashes, tmp_path)
    assert died(crashes, tmp_path, of=task(1))
    assert not died(crashes, tmp_path, of=task(1))


def test_other_roles_codes_and_kills_of_our_own_count(tmp_path: Path) -> None:
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    assert not died(crashes, tmp_path, command=RoleCommand(roles.TRAINER, 0, (), ()))
    assert not died(crashes, tmp_path, -4)
    assert not died(crashes, tmp_path, signal.SIGKILL), "the first one may be anybody's"
    assert died(crashes, tmp_path, signal.SIGKILL)


def test_who_hangs_counts_and_is_suspected_the_second_time(tmp_path: Path) -> None:
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    for due in (False, True, True):
        assert not died(crashes, tmp_path, signal.SIGKILL, hung=True)
        assert there(JobFolder(tmp_path).suspicions.of(task())).is_due is due


def test_a_process_that_read_nothing_counts(tmp_path: Path) -> None:
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    crashes.starts(DATA)
    assert not crashes.is_examined(DATA, Ended(EndReason.SIGNAL, -signal.SIGSEGV), hung=False)


def test_a_limit_of_memory_that_is_too_low_is_no_fault_of_what_was_read(tmp_path: Path) -> None:
    crashes = ExaminedCrashes(JobFolder(tmp_path).suspicions)
    for _ in range(3):
        assert not died(crashes, tmp_path, signal.SIGKILL, reason=EndReason.OOM)
    assert JobFolder(tmp_path).suspicions.of(task()) is None
