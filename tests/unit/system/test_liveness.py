"""How long the threads of a process have made no progress, by their own marks."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.system.files.durable import copy_file, file_digest
from forebay.system.files.locks import FileLock, TurnLock, locked
from forebay.system.liveness import (
    COMPUTING_SECONDS_MAX,
    Activity,
    ActivityAges,
    ActivityState,
    Pulse,
    PulseFile,
    activities,
    current_activity,
    doing,
    helping,
    progressed,
    start_pulse,
    waiting,
)


def look(ages: ActivityAges, *found: Activity, cpu: float = 0.0, times: int = 1) -> float:
    """So many seconds pass, one look in each; how long the stillest activity has not got on."""
    for _ in range(times):
        still = ages.look(found, 1.0, cpu)
    return still.seconds


def test_a_mark_is_progress_of_the_thread_that_made_it_alone() -> None:
    mine, others = Activity("mine"), Activity("others")
    ages = ActivityAges()
    look(ages, mine, others)

    def work() -> None:
        with others:
            progressed()

    with mine:
        for _ in range(5):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            still = ages.look([mine, others], 1.0, 9.0)
        assert still == (5.0, "mine"), "neither CPU nor another thread's marks count"
        progressed()
        assert look(ages, mine, others) == 1.0
    assert current_activity() is None
    progressed()  # nobody watches this thread


def test_what_waits_or_is_over_never_counts() -> None:
    ages = ActivityAges()
    with Activity("read") as read:
        look(ages, read)
        with waiting():
            assert look(ages, read, times=1000) == 0.0
        assert look(ages, read, times=3) == 2.0, "it has got on when the wait ended"
        read.is_over = True
        assert look(ages, read, times=1000) == 0.0


def test_to_compute_is_progress_while_it_uses_the_processor_for_an_hour_at_most() -> None:
    ages = ActivityAges()
    with Activity("trainer") as trainer, doing("export", "computing"):
        look(ages, trainer)
        assert trainer.text == "trainer, export"
        assert look(ages, trainer, cpu=0.5, times=int(COMPUTING_SECONDS_MAX)) == 0.0
        assert look(ages, trainer, cpu=0.5, times=10) == 10.0, "it turns in circles"
        progressed()
        assert look(ages, trainer, cpu=0.5, times=10) == 0.0
        assert look(ages, trainer, cpu=0.01, times=7) == 7.0, "threads that beat use a little"
    assert (trainer.text, trainer.state) == ("trainer", "working")


def test_steps_nest_each_end_is_progress_and_so_is_help() -> None:
    with Activity("trainer") as trainer:
        marks = trainer.marks
        with doing("load"), waiting():
            assert (trainer.text, trainer.state) == ("trainer, load", "waiting")
        assert trainer.marks == marks + 4
        with Activity("inner") as inner:
            assert current_activity() is inner
            assert set(activities()) >= {trainer, inner}
        assert current_activity() is trainer
    assert trainer not in activities()
    with doing("load"), waiting():  # nobody watches this thread
        pass
    with Activity("answering") as answering:
        marks = answering.marks

        def work() -> None:
            with helping(answering):
                progressed()
            progressed()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert answering.marks == marks + 1


Moments = st.lists(
    st.tuples(st.sampled_from(["working", "computing", "waiting"]), st.booleans(), st.booleans()),
    max_size=60,
)


@given(Moments)
def test_still_is_the_time_since_anything_counted(
    moments: list[tuple[ActivityState, bool, bool]],
) -> None:
    """The definition, looked up from the end, against the running sum."""
    ages, one = ActivityAges(), Activity("one")
    look(ages, one)
    counted = []
    for state, marks, computes in moments:
        one.state = state
        one.marks += marks
        counted.append(marks or state == "waiting" or (state == "computing" and computes))
        found = look(ages, one, cpu=float(computes))
        still = next((n for n, each in enumerate(reversed(counted)) if each), len(counted))
        assert found == still


def test_a_pulse_shows_what_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.system.liveness.BEAT_SECONDS", 0.02)
    path = tmp_path / "trainer-0"
    assert PulseFile(path).read() is None
    with Activity("é" * 200):
        start_pulse(path)
        assert PulseFile(path).read() == Pulse(1, 0.0, "")
        eventually(lambda: (shown := PulseFile(path).read()) and shown.still_seconds > 0.1)
        shown = there(PulseFile(path).read())
        assert shown.beats > 3
        assert shown.doing == "é" * 120
    for torn in (b"", path.read_bytes()[:-1]):
        (tmp_path / "trainer-1").write_bytes(torn)
        assert PulseFile(tmp_path / "trainer-1").read() is None


def test_a_large_file_and_the_wait_for_a_lock_are_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.system.files.durable._PART_BYTES", 10)
    source = tmp_path / "model"
    source.write_bytes(bytes(range(35)))

    def marks(work: Callable[[], object]) -> int:
        with Activity("store") as one:
            work()
        return one.marks

    assert marks(lambda: file_digest(source)) == 4
    assert file_digest(source) == hashlib.sha256(bytes(range(35))).hexdigest()
    assert marks(lambda: copy_file(source, tmp_path / "copy")) == 4
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    with locked(tmp_path / "lock", 0):
        assert marks(lambda: FileLock(tmp_path / "lock").acquire(0.1)) > 0
    turn = TurnLock(tmp_path / "line")
    assert turn.acquire(0)
    assert marks(lambda: TurnLock(tmp_path / "line").acquire(0.1)) == 2
    turn.release()


FULL = """
import resource, sys, time
from pathlib import Path
from forebay.system.liveness import PulseFile, start_pulse

path = Path(sys.argv[1])
start_pulse(path)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))  # the disk takes nothing
time.sleep(0.8)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
before = PulseFile(path).read().beats
deadline = time.monotonic() + 20
while PulseFile(path).read().beats == before:
    assert time.monotonic() < deadline, "it beats no more"
    time.sleep(0.05)
"""


def test_a_pulse_survives_a_disk_that_takes_nothing_for_a_moment(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "pulse")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot be written now") == 1
