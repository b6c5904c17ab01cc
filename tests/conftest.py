"""For all tests: the real Kafka broker, what a run reports, how Hypothesis looks for examples."""

from __future__ import annotations

import gc
import sys

import pytest
from hypothesis import HealthCheck, Phase, settings

# With their assertions rewritten, tests are compiled once for all workers and runs.
sys.dont_write_bytecode = False

# Helpers assert too: a failure there shows its values as one in a test does.
pytest.register_assert_rewrite("support")

pytest_plugins = (
    "support.kafka_broker",
    "support.postgres_server",
    "support.s3_server",
    "support.health",
    "support.jobs_here",
    "support.airflow_plugin",
)

# The machine may be shared, so no limit is in seconds.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# For tests/mutants.py: the first failure is enough, its smallest form is of no interest.
settings.register_profile(
    "mutants", settings.get_profile("shared"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("shared")

# It takes most of an hour of whatever processors the others leave.
LONGEST = "tests/chaos/test_every_point.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first. The order of files on the command line says nothing to pytest."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """What was imported by now stays: no collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()
