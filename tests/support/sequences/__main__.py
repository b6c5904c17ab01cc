"""`python -m support.sequences --seed S [--examples N] [--steps M] [--shrink] [--broker ADDRESS]`.

In its own process: its steps are done in children, and who may have threads is not to be forked.
"""

from __future__ import annotations

import argparse
import json
import uuid
from datetime import timedelta
from typing import ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from support.sequences.machine import NULLS, PARTITIONS, SEEN, STEP, Sequences
from support.sequences.topic import End, Form, Topic
from support.sequences.writer import RemoteWriter


class BrokerSequences(Sequences):
    """Rules of the base are those for any stream."""

    bootstrap: ClassVar[str]
    writer: ClassVar[RemoteWriter]
    log: Topic

    @initialize(warm=st.booleans(), rows=st.integers(1, 40), form=st.sampled_from(Form.__args__))
    def begin(self, warm: bool, rows: int, form: Form) -> None:
        name = f"clicks-{uuid.uuid4().hex[:12]}"
        self.log = Topic(self.writer, name, form)
        options = {"bootstrap": self.bootstrap, "topic": name, "format": form}
        self._begin(warm, rows, {"kind": "kafka", "options": options})

    def teardown(self) -> None:
        self.writer.delete(self.log.name)
        super().teardown()

    @rule(
        name=PARTITIONS,
        quiet=st.integers(0, 30),
        count=st.integers(1, 30),
        nulls=NULLS,
        end=st.sampled_from(["commit", "commit", "abort"]),
    )
    def transact(self, name: str, quiet: int, count: int, nulls: tuple[int, ...], end: End) -> None:
        """In time, and all at once or not at all."""
        self.log.partition(name)
        begin = self._next(name) + timedelta(hours=quiet)
        added = [(begin + number * STEP, 2, nulls[:1], False) for number in range(count)]
        self.log.transact(name, added, end)

    @precondition(lambda self: self.log.opened is None)
    @rule(name=PARTITIONS, count=st.integers(1, 10))
    def open_transaction(self, name: str, count: int) -> None:
        """It stays open while others write, plan and run."""
        self.log.partition(name)
        begin = self._next(name)
        added = [(begin + number * STEP, 2, (), False) for number in range(count)]
        self.log.transact(name, added, "leave")

    @precondition(lambda self: self.log.opened is not None)
    @rule(end=st.sampled_from(["commit", "commit", "abort"]))
    def end_transaction(self, end: End) -> None:
        self.log.finish(end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--examples", type=int, default=10)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--shrink", action="store_true", help="look for the shortest sequence")
    parser.add_argument("--broker", help="of Kafka, whose topic is the stream instead of a log")
    given = parser.parse_args()
    machine = Sequences
    if given.broker:
        BrokerSequences.bootstrap = given.broker
        BrokerSequences.writer = RemoteWriter(given.broker)
        machine = BrokerSequences
    phases = [Phase.generate, Phase.shrink] if given.shrink else [Phase.generate]
    run_state_machine_as_test(
        seed(given.seed)(machine),
        settings=settings(
            max_examples=given.examples,
            stateful_step_count=given.steps,
            database=None,
            deadline=None,
            print_blob=False,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(json.dumps(SEEN, indent=1))


if __name__ == "__main__":
    main()
