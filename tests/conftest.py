"""Fixtures for all tests: the real Kafka broker, started once when a test asks for it."""

from __future__ import annotations

pytest_plugins = ("support.kafka_broker",)
