"""`python -m support.sequences --seed S [--examples N] [--steps M] [--shrink] [--broker ADDRESS]`.

In its own process: its steps are done in children, and who may have threads is not to be forked.
"""

from __future__ import annotations

import argparse
import json

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from support.sequences.broker_machine import BrokerSequences
from support.sequences.machine import SEEN, Sequences
from support.sequences.writer import RemoteWriter


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
