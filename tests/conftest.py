"""For all tests: the real Kafka broker, what a run reports, how Hypothesis looks for examples."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ("support.kafka_broker", "support.health")

# The machine may be shared, so no limit is in seconds.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
