"""Limits and figures of control groups.

By the kernel, where this user may write its groups. Version 2 and unusual layouts of version 1 also
by a tree of files, in which making and removing a group does what the kernel would.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import InfrastructureError
from forebay.system.processes import cgroups
from forebay.system.processes.cgroups import ControlGroup, ControlGroups, GroupUsage, memory_writes

MIB = 1 << 20
HERE = ControlGroups.found()
REFUSAL = HERE.memory_refusal or HERE.cpu_refusal
NAME = f"test-{os.getpid()}"
by_the_kernel = pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL)
Run = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    made = HERE.make(NAME)
    yield made
    made.remove()
    assert made.usage() is None


@pytest.fixture
def run(group: ControlGroup) -> Iterator[Run]:
    """Runs code in the group up to its first line of output; `input()` in it waits for `go_on`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", f"input()\n{code}"]
        started.append(subprocess.Popen(command, stdin=-1, stdout=-1, bufsize=0))
        assert group.add(started[-1].pid) == ""
        return go_on(started[-1])

    yield start
    for child in started:
        child.kill()
        child.communicate()


def go_on(child: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    assert child.stdin
    assert child.stdout
    child.stdin.write(b"\n")
    child.stdout.readline()
    return child


def usage_of(group: ControlGroup) -> GroupUsage:
    usage = group.usage()
    assert usage
    return usage


def share(group: ControlGroup, seconds: float) -> float:
    """Cores that it takes for so long."""
    before, began = usage_of(group).cpu_seconds or 0.0, time.monotonic()
    time.sleep(seconds)
    return ((usage_of(group).cpu_seconds or 0.0) - before) / (time.monotonic() - began)


@by_the_kernel
def test_a_quota_holds_and_follows(group: ControlGroup, run: Run) -> None:
    # It goes before the other processes of a busy machine: only the quota holds it back.
    version, folder, _ = group.places["cpu"]
    (folder / {1: "cpu.shares", 2: "cpu.weight"}[version]).write_text("10000")
    run("print(flush=True)\nwhile True: pass")
    assert group.limit_cpu(0.5) == ""
    assert share(group, 2.0) == pytest.approx(0.5, rel=0.1)
    assert group.limit_cpu(0.2) == ""
    assert share(group, 1.0) == pytest.approx(0.2, rel=0.2)
    assert (usage_of(group).throttled_seconds or 0.0) > 1.0
    assert group.limit_cpu(None) == ""
    assert share(group, 0.5) > 0.6
    assert "out of range" in group.limit_cpu(0.001)


@by_the_kernel
def test_who_takes_more_than_the_limit_is_killed(group: ControlGroup, run: Run) -> None:
    assert group.limit_memory(64 * MIB) == ""
    assert run("taken = b'x' * (200 << 20)").wait(20) == -9
    assert usage_of(group).oom_kills == 1
    assert 60 * MIB < (usage_of(group).memory_peak_bytes or 64 * MIB) <= 64 * MIB


@by_the_kernel
def test_memory_is_resized_down_to_what_is_in_use(group: ControlGroup, run: Run) -> None:
    child = run("taken = b'x' * (64 << 20); print(flush=True); input(); taken += taken")
    for memory_bytes in (200 * MIB, 100 * MIB):
        assert group.limit_memory(memory_bytes) == ""
    assert 64 <= int(group.limit_memory(50 * MIB).removesuffix(" MiB are in use")) < 80
    version, folder, _ = group.places["memory"]
    assert int((folder / cgroups._MEMORY_LIMIT[version]).read_text()) == 100 * MIB
    # What it took before it was added counts elsewhere.
    outside = psutil.Process(child.pid).memory_info().rss - (usage_of(group).memory_bytes or 0)
    assert 0 < outside < 16 * MIB
    assert group.limit_memory(None) == ""
    assert go_on(child).wait(20) == 0


@by_the_kernel
def test_files_that_were_read_give_way(group: ControlGroup, run: Run, tmp_path: Path) -> None:
    code = "import os; file = open({!r}, 'wb'); file.write(bytes(64 << 20)); os.fsync(file)"
    run(f"{code.format(str(tmp_path / 'file'))}; print(flush=True); input()")
    assert (usage_of(group).memory_bytes or 0) < 32 * MIB
    assert (usage_of(group).memory_peak_bytes or 65 * MIB) > 64 * MIB
    assert group.limit_memory(32 * MIB) == ""


@by_the_kernel
def test_cpu_time_is_what_the_process_took(group: ControlGroup, run: Run) -> None:
    child = run("print(flush=True); input(); sum(range(20_000_000)); print(flush=True); input()")

    def used() -> tuple[float, float]:
        times = psutil.Process(child.pid).cpu_times()
        return usage_of(group).cpu_seconds or 0.0, times.user + times.system

    before = used()
    go_on(child)
    told, expected = (after - earlier for after, earlier in zip(used(), before, strict=True))
    assert told == pytest.approx(expected, rel=0.05, abs=0.02)  # /proc tells hundredths


@by_the_kernel
def test_a_group_with_processes_stays(
    group: ControlGroup, run: Run, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_REMOVAL_SECONDS", 0.05)
    child = run("print(flush=True); input()")
    with pytest.raises(InfrastructureError, match=f"forebay-{NAME}/cgroup.procs"):
        HERE.make(NAME)
    empty = HERE.make(f"{NAME}-empty")
    HERE.remove_left(NAME)
    assert empty.usage() is None
    group.remove()
    assert f"forebay-{NAME} cannot be removed: Device or resource busy" in caplog.text
    assert usage_of(group)
    child.kill()
    child.wait()
    assert group.add(child.pid) == ""  # it has ended
    HERE.make(NAME).remove()
    assert group.usage() is None
    for reason in (group.limit_memory(MIB), group.limit_cpu(1.0), group.add(os.getpid())):
        assert reason.endswith("No such file or directory")


FRESH = {
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.current": f"{90 * MIB}",
    "memory.swap.current": f"{MIB}",
    "memory.stat": f"active_file {30 * MIB}\ninactive_file {9 * MIB}\nslab_reclaimable {2 * MIB}\n",
    "memory.events": "oom 3\noom_kill 2\n",
    "cpu.max": "max 100000",
    "cpu.stat": "usage_usec 2500000\nthrottled_usec 500000\n",
    "cgroup.procs": "",
}


class Tree:
    """What is mounted, and `/proc/self/cgroup`."""

    def __init__(self, folder: Path) -> None:
        self.mounted, self.membership = folder / "mounted", folder / "cgroup"

    def group(self, path: str, **files: str) -> Path:
        """A group, with its files by names with _ for the dot."""
        folder = self.mounted / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {"cgroup_procs": "", **files}.items():
            (folder / name.replace("_", ".", 1)).write_text(text)
        return folder

    def found(self, membership: str) -> ControlGroups:
        self.membership.write_text(membership)
        return ControlGroups.found(self.mounted, self.membership)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """New groups get the kernel's files, and those with processes cannot be removed."""
    mkdir = Path.mkdir

    def make(folder: Path, mode: int = 0o777, **options: bool) -> None:
        mkdir(folder, mode, **options)
        for name, text in FRESH.items() if folder.name.startswith("forebay-") else ():
            (folder / name).write_text(text)

    def remove(folder: Path) -> None:
        if (folder / "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        shutil.rmtree(folder)

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", remove)
    return Tree(tmp_path)


def test_the_second_version_limits_and_counts(tree: Tree) -> None:
    tree.group("", cgroup_controllers="cpu memory", cgroup_subtree_control="cpu memory")
    tree.group("app", cgroup_subtree_control="cpu memory pids", memory_max="max", cpu_max="max 100")
    tree.group("app/own", cgroup_subtree_control="")
    groups = tree.found("0::/app/own\n")
    assert (groups.cpu_refusal, groups.memory_refusal) == ("", "")
    group, folder = groups.make("data"), tree.mounted / "app" / "forebay-data"
    assert group.add(7) == ""
    assert (folder / "cgroup.procs").read_text() == "7"
    assert group.limit_memory(49 * MIB) == "50 MiB are in use"
    for memory_bytes, cores, *expected in (
        (50 * MIB, 0.25, f"{50 * MIB}", "0", "25000 100000"),
        (None, None, "max", "max", "max 100000"),
    ):
        assert (group.limit_memory(memory_bytes), group.limit_cpu(cores)) == ("", "")
        names = ("memory.max", "memory.swap.max", "cpu.max")
        assert [(folder / name).read_text() for name in names] == expected
    assert group.usage() == (2.5, 0.5, 50 * MIB, None, 2)
    (folder / "memory.peak").write_text(f"{95 * MIB}\n")
    (folder / "memory.swap.max").unlink()
    assert usage_of(group).memory_peak_bytes == 95 * MIB
    assert group.limit_memory(60 * MIB) == ""


@pytest.mark.parametrize(
    ("root", "above", "own", "cpu", "memory"),
    [
        ("cpu", "memory", {}, "this user can write gives its children the controller cpu", ""),
        ("cpu memory", "memory", {}, "", ""),  # one place for both
        ("cpu memory", "cpu memory", {"memory_max": "9"}, "app/own, whose limits", "app/own"),
        ("cpu memory", "", {"cgroup_subtree_control": "cpu", "cpu_max": "5 9"}, "", "app/own"),
    ],
)
def test_the_second_version_has_one_place(
    tree: Tree, root: str, above: str, own: dict[str, str], cpu: str, memory: str
) -> None:
    tree.group("", cgroup_controllers="cpu memory", cgroup_subtree_control=root)
    tree.group("app", cgroup_subtree_control=above)
    tree.group("app/own", **own)
    groups = tree.found("0::/app/own\n")
    assert len(groups.folders()) <= 1
    for expected, refusal in ((cpu, groups.cpu_refusal), (memory, groups.memory_refusal)):
        assert expected in refusal
        assert bool(expected) == bool(refusal)


def test_what_is_not_writable_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tree.group("memory/own")
    tree.group("unified", cgroup_controllers="cpu", cgroup_subtree_control="cpu")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    groups = tree.found("3:memory:/own\n0::/\n")
    assert groups.memory_refusal == f"{own} is not writable by this user"
    assert "this user can write gives its children the controller cpu" in groups.cpu_refusal


def test_the_first_version_is_found_in_any_layout(tree: Tree) -> None:
    cpu = tree.group("cpu,cpuacct", cgroup_procs=f"1\n{os.getpid()}\n")  # a container's own
    (tree.mounted / "cpu").symlink_to("cpu,cpuacct")
    tree.group("8")
    tree.group("memory")
    groups = tree.found("9:cpuacct,cpu:/host/7\n5:memory:/../8\n3:name=systemd:/\n0::/\n")
    assert (groups.folders(), groups.cpu_refusal) == ({cpu}, "")
    assert groups.memory_refusal.startswith("no group of this process for memory is below")
    group = groups.make("data")
    (cpu / "forebay-data" / "cpuacct.usage").write_text("1500000000\n")
    assert group.usage() == (1.5, None, None, None, None)
    assert group.limit_memory(MIB) == groups.memory_refusal
    shutil.rmtree(tree.mounted)
    assert groups.make("data").limit_cpu(1.0).endswith("cannot be made: No such file or directory")


def test_a_machine_without_groups_says_so(tmp_path: Path) -> None:
    groups = ControlGroups.found(tmp_path, tmp_path / "cgroup")
    assert groups.cpu_refusal == groups.memory_refusal == "not Linux with control groups"
    groups.remove_left("")
    group = groups.make("data")
    assert group.limit_memory(MIB) == group.limit_cpu(1.0) == groups.cpu_refusal
    assert (group.add(os.getpid()), group.usage()) == ("", None)


SIZES = st.integers(1, 1 << 62)


@given(st.tuples(SIZES, SIZES).map(sorted), st.none() | SIZES)
def test_the_limit_with_swap_is_never_the_lower_one(now: list[int], wanted: int | None) -> None:
    limits = dict(zip((cgroups._MEMORY_LIMIT[1], cgroups._SWAP_LIMIT[1]), now, strict=True))
    for name, text in memory_writes(1, wanted, f"{now[1]}\n").items():
        limits[name] = 1 << 63 if text == "-1" else int(text)
        assert limits[cgroups._MEMORY_LIMIT[1]] <= limits[cgroups._SWAP_LIMIT[1]]
    assert set(limits.values()) == {wanted or 1 << 63}
