"""Windows listed in any order and in any passes have the tasks that planning them at once gives."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.stages import Stages, noon, stages, table

from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.home.paths import Home

NAMES = ("a", "b")
WINDOWS = 4


class Model:
    """What ought to be listed: for which pass, and at which state of the data."""

    def __init__(self, found: Stages) -> None:
        self.found = found
        self.passes = dict.fromkeys(range(WINDOWS), 0)
        self.listed: dict[tuple[str, int], tuple[int, int]] = {}
        self.version = 0
        self.change()

    def change(self) -> None:
        """One more row in every window."""
        self.version += 1
        times = [noon(number) for number in range(WINDOWS) for _ in range(self.version)]
        for name in NAMES:
            MEMORY[name] = table(times)

    def list_window(self, name: str, number: int, others: list[int]) -> None:
        """One call; the scans that it makes and what it says are as foreseen."""
        scans = self.found.scans
        scans.clear()
        asked = [(other, self.by(other)) for other in others]
        result = self.found.source(number, name, self.by(number), asked)
        todo = {other for other in {*others, number} if not self.is_listed(name, other)}
        if self.is_listed(name, number):
            assert (scans, result.storage_calls) == ([], 0)
        else:
            expected = [self.found.window(other).span for other in sorted(todo)]
            assert scans == [(name, expected)]
            assert (result.storage_calls, result.windows_scanned) == (1, len(todo))
            self.listed |= {(name, other): (self.passes[other], self.version) for other in todo}
        assert (result.state, result.rows) == ("listed", self.listed[name, number][1])

    def is_listed(self, name: str, number: int) -> bool:
        return self.listed.get((name, number), (None, 0))[0] == self.passes[number]

    def by(self, number: int) -> str:
        return f"run{number}#{self.passes[number]}"


@settings(max_examples=25)
@given(st.data())
def test_any_interleaving_of_windows_and_passes(data: Any) -> None:
    numbers = st.integers(0, WINDOWS - 1)
    step = st.one_of(
        st.tuples(st.just("list"), st.sampled_from(NAMES), numbers, st.lists(numbers, unique=True)),
        st.tuples(st.just("clear"), numbers),
        st.tuples(st.just("change")),
    )
    with tempfile.TemporaryDirectory() as folder, stages(Path(folder), NAMES) as found:
        model = Model(found)
        for action, *arguments in data.draw(st.lists(step, max_size=12)):
            if action == "list":
                model.list_window(*arguments)
            elif action == "clear":
                model.passes[arguments[0]] += 1
            else:
                model.change()
        model.passes = dict.fromkeys(model.passes, 99)
        everything, scans = list(range(WINDOWS)), 0
        for name in NAMES:
            for number in data.draw(st.permutations(everything)):
                model.list_window(name, number, everything)
                scans += len(found.scans)
        assert scans == len(NAMES)
        for number in data.draw(st.permutations(everything)):
            assert found.sink(number, model.by(number)).recorded
        other = Ledger(Home(found.root / "other"), "ads")
        windows = [found.window(number) for number in range(WINDOWS)]
        declared = (found.root, found.pipeline, found.sources)
        report = plan_windows(*declared, other, windows, warm_start=None, clock=lambda: found.now)
        for plan in report.plans:
            assert found.ledger.latest_plan(plan.window) == plan
            assert found.ledger.tasks(plan.window, 1).equals(other.tasks(plan.window, 1))
