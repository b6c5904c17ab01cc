"""When a process counts as hung, on a clock of the test, and what is done about it."""

from __future__ import annotations

import signal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from forebay.system.liveness import Pulse, PulseFile
from forebay.system.processes.hangs import GRACE_SECONDS, STARTING_SECONDS, HangGuard, HangWatch
from forebay.system.processes.identity import ProcessIdentity

DEADLINE = 10.0


def reason_at(watch: HangWatch, pulse: Pulse | None, first: float, last: float) -> str | None:
    """The first reason found by a look in each second."""
    seconds = first
    while seconds <= last:
        if reason := watch.reason(pulse, seconds):
            return reason
        seconds += 1.0
    return None


def test_a_beat_is_no_progress_and_a_start_takes_its_time() -> None:
    watch = HangWatch(DEADLINE, 0.0)
    for second in range(1, 100):
        assert watch.reason(Pulse(second, DEADLINE, "reading clicks/3"), float(second)) is None
    hung = watch.reason(Pulse(100, 10.5, "reading clicks/3"), 100.0)
    assert hung == "no progress for 10 s (reading clicks/3)"
    assert reason_at(HangWatch(DEADLINE, 0.0), None, 0.0, STARTING_SECONDS) is None
    hung = reason_at(HangWatch(DEADLINE, 0.0), None, 0.0, 1000.0)
    assert hung == "no sign of life for 61 s after its start"
    assert reason_at(HangWatch(300.0, 0.0), None, 0.0, 300.0) is None
    watch, pulse = HangWatch(DEADLINE, 0.0), Pulse(7, 0.0, "")
    assert watch.reason(pulse, 1.0) is None
    assert watch.reason(pulse, 1000.0) is None
    assert reason_at(watch, pulse, 1001.0, 1010.0) is None
    assert watch.reason(pulse, 1011.0) == "no sign of life for 11 s"


@given(st.lists(st.booleans(), max_size=80))
def test_life_is_judged_by_the_time_since_the_last_beat(beats: list[bool]) -> None:
    watch, count, last = HangWatch(DEADLINE, 0.0), 1, 0.0
    assert watch.reason(Pulse(count, 0.0, ""), 0.0) is None
    for second, beat in enumerate(beats, 1):
        count += beat
        last = float(second) if beat else last
        found = watch.reason(Pulse(count, 0.0, ""), float(second))
        assert (found is not None) == (second - last > DEADLINE)


class FakeIdentity(ProcessIdentity):
    def signal(self, number: signal.Signals) -> bool:
        SENT.append(number)
        return True


SENT: list[signal.Signals] = []
PROCESS = FakeIdentity(pid=1, create_time=1)


def test_stacks_first_then_the_end_of_exactly_this_process(tmp_path: Path) -> None:
    SENT.clear()
    path = tmp_path / "trainer-0"
    path.write_bytes(b"what the process before showed")
    guard = HangGuard("trainer-0", PulseFile(path), DEADLINE)
    guard.begin(0.0)
    assert not path.exists()
    found = next(n for n in range(1000) if guard.tick(PROCESS, float(n)))
    assert guard.reason == f"hung: no sign of life for {found} s after its start"
    assert SENT == [signal.SIGUSR1, signal.SIGCONT]
    assert not guard.tick(PROCESS, found + GRACE_SECONDS - 0.1)
    assert len(SENT) == 2
    for later in range(10):
        assert not guard.tick(PROCESS, found + GRACE_SECONDS + later)
    assert SENT[2:] == [signal.SIGKILL]
    guard.begin(2000.0)
    assert guard.reason == ""
    assert not guard.tick(PROCESS, 2000.0)
