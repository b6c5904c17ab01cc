"""Which variables each role of a job inherits."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.config.role_environment import declared_variables, role_variables
from forebay.config.specs.jobs import JobSpec
from forebay.executors.roles.table import ROLES

_NAMES = {"data": "ACME_D*", "trainer": "ACME_TRAINER"}
_ROLES = {role: {"runtime": {"environment": [name]}} for role, name in _NAMES.items()}
JOB = JobSpec.model_validate({"roles": _ROLES})
PIPELINE: dict[str, Any] = {"model": {"seed": "${SEED:-7}"}}
CLIENT = {"client": {"sasl_plain_password": "${TOPIC_PASSWORD}"}}
SOURCES: dict[str, dict[str, Any]] = {"clicks": {"event_time": "${EVENT_TIME}", "options": CLIENT}}
ALWAYS = {"PATH", "FOREBAY_HOME", "SEED", "EVENT_TIME"}
STORAGES = {"AWS_ACCESS_KEY_ID", "AZURE_CLIENT_SECRET", "TOPIC_PASSWORD", "ACME_DATA"}
FACTS = {"FOREBAY_DATABASE", "PGPASSWORD"}
ENVIRON = dict.fromkeys(ALWAYS | STORAGES | FACTS | {"ACME_TRAINER", "OTHERS_TOKEN"}, "value")


def inherited(name: str, **more: str) -> set[str]:
    role = next(each for each in ROLES if each.name == name)
    runtime = role.settings(JOB.roles).runtime
    return set(role_variables(role.access, ENVIRON | more, runtime, PIPELINE, SOURCES))


@pytest.mark.parametrize(
    ("role", "opened"),
    [("data", STORAGES), ("driver", STORAGES | FACTS), ("trainer", FACTS | {"ACME_TRAINER"})],
)
def test_what_each_role_opens(role: str, opened: set[str]) -> None:
    assert inherited(role) == ALWAYS | opened


@pytest.mark.parametrize(
    ("store", "more"), [("/srv/store", set()), ("s3://bucket/folder", {"AWS_ACCESS_KEY_ID"})]
)
def test_the_trainer_writes_to_a_store_in_a_bucket(store: str, more: set[str]) -> None:
    found = inherited("trainer", FOREBAY_STORE=store)
    assert found == ALWAYS | FACTS | {"ACME_TRAINER", "FOREBAY_STORE"} | more


def test_a_job_declares_what_any_of_its_roles_may_need() -> None:
    declared = declared_variables(JOB, {"SEED", "TOPIC_PASSWORD"})
    assert declared == ("ACME_D*", "ACME_TRAINER", "SEED", "TOPIC_PASSWORD")
