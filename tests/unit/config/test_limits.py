"""Every number of a declaration, its default and its bounds: what a file means without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from forebay.config.schema import json_schema
from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.jobs import (
    FailoverSpec,
    JobSpec,
    ProgressDeadlinesSpec,
    RolesSpec,
    RuntimeSpec,
)
from forebay.config.specs.models import MixtureSpec
from forebay.config.specs.registry import installed_kinds

ROLES = ("driver", "data", "trainer")
WORDS = {"default": "default", "minimum": ">=", "maximum": "<="}
WORDS |= {"exclusiveMinimum": ">", "exclusiveMaximum": "<"}
WORDS |= {"minLength": "length >=", "maxLength": "length <="}
WORDS |= {"minItems": "items >=", "maxItems": "items <="}
WORDS |= {"minProperties": "keys >=", "maxProperties": "keys <="}
_LIMITS = {
    "BucketiseFeature": {"boundaries": "items >= 1", "dimension": "default 8, >= 1, <= 1024"},
    "BuffersSpec": {
        "align_hours": "default 6, >= 1",
        "bytes_max": "default 67108864, >= 65536",
        "chunk_rows": "default 32768, >= 1",
        "credits": "default 4, >= 1",
        "flush_seconds": "default 0.2, > 0",
        "rows_max": "default 131072, >= 1",
        "settle_seconds": "default 5.0, >= 0",
    },
    "CheckpointSpec": {"every_steps": "default 200, >= 1", "windows_kept": ">= 1, <= 1000000000"},
    "CrossFeature": {
        "buckets": ">= 2, <= 2147483647",
        "columns": "items >= 2",
        "dimension": "default 8, >= 1, <= 1024",
    },
    "DatasetSpec": {
        "features": "keys >= 1",
        "named_labels": "keys <= 8",
        "plan_ahead_windows": "default 400, >= 1",
        "queue_unit": "default 1.0, > 0",
        "slices": "items <= 8",
        "streams": "keys >= 1",
        "window": "default 1d",
    },
    "DelayHeadSpec": {"hidden": "default [16], >= 1, <= 65536", "q_min": "default 0.2, >= 0, < 1"},
    "FailoverSpec": {
        "heartbeat_timeout": "default 10s",
        "restarts_max": "default 8, >= 0",
        "task_attempts_max": "default 3, >= 1",
    },
    "HashFeature": {"buckets": ">= 2, <= 2147483647", "dimension": "default 8, >= 1, <= 1024"},
    "IcebergOptions": {"catalog": "keys >= 1", "table": "length >= 1"},
    "JobSpec": {
        "judge_rows_max": "default 50000, >= 0, <= 10000000",
        "windows_kept": "default 10000, >= 1, <= 1000000000",
    },
    "KafkaOptions": {
        "bootstrap": "length >= 1",
        "close_delay": "default 1m",
        "message_bytes_max": "default 67108864, >= 65536, <= 1073741824",
        "message_rows_max": "default 1000000, >= 1, <= 100000000",
        "message_type": "length >= 1",
        "schema_file": "length >= 1",
        "timestamp_jump_max": "default 1h",
        "topic": "length >= 1",
    },
    "LogOptions": {
        "close_delay": "default 1m",
        "path": "length >= 1",
        "moved": "length >= 1",
        "timestamp_jump_max": "default 1h",
    },
    "MemoryOptions": {"table": "length >= 1"},
    "MixtureSpec": {"gain": "default 0.05, >= 0"},
    "ModelSpec": {
        "dense_learning_rate": "default 0.003, > 0",
        "embedding_learning_rate": "default 0.1, > 0",
        "seed": "default 17",
    },
    "NamedLabelSpec": {"weight": "default 1.0, > 0"},
    "NumericFeature": {
        "mean": "default 0.0",
        "missing": "default 0.0",
        "scale": "default 1.0, > 0",
    },
    **{
        key: {"path": "length >= 1", "window_path": "length >= 1"}
        for key in ("CsvOptions", "JsonOptions", "ParquetOptions", "TfrecordOptions")
    },
    "ProgressDeadlinesSpec": {
        "data": "default 5m",
        "driver": "default 5m",
        "trainer": "default 5m",
    },
    "PublishSpec": {
        "min_rows": "default 2000, >= 2",
        "windows_kept": ">= 1, <= 1000000000",
        "serving_kept": "default 3, >= 2, <= 1000",
    },
    "ReadySpec": {"silent_max": "default 1d", "wait": "default 0s"},
    "RoleSpec": {"count": "default 1, >= 1, <= 1024", "threads": "default 2, >= 1, <= 256"},
    "TrainerRoleSpec": {"count": "default 1", "threads": "default 2, >= 1, <= 256"},
    "ScheduleSpec": {
        "active_runs_max": "default 16, >= 1, <= 10000",
        "grace": "default 1m",
        "owner": "default forebay, length >= 1, length <= 500",
        "plan_timeout": "default 1h",
        "pool": "default default_pool, length >= 1, length <= 256",
        "retries": "default 3, >= 2, <= 1000",
        "retry_delay": "default 10s",
        "tags": "items <= 100, length >= 1, length <= 100",
        "train_timeout": "default 1d",
        "turn_wait": "default 1d",
    },
    "SourceSpec": {
        "columns": "keys >= 1",
        "dead_letter_bytes_max": "default 16777216, >= 0",
        "dead_letter_rows_max": ">= 0",
    },
    "StreamSpec": {
        "floor": "default 0.0, >= 0, < 1",
        "offset": "default 0s",
        "sources": "items >= 1",
        "weight": "default 1.0, > 0",
    },
    "TowerSpec": {"hidden": "default [64, 32], >= 1, <= 65536"},
    "TrainSpec": {
        "minibatch_rows": "default 512, >= 1, <= 65536",
        "seeds": "default 1, >= 1, <= 16",
    },
    "VocabularyFeature": {"dimension": "default 8, >= 1, <= 1024", "values": "items >= 1"},
}
NUMBERS = {f"{name}.{key}": rule for name, rules in _LIMITS.items() for key, rule in rules.items()}
NUMBERS["CsvOptions.names"] = "items >= 1"
_CLIENT_NUMBERS = (
    *("request_timeout_ms", "retry_backoff_ms", "reconnect_backoff_ms", "reconnect_backoff_max_ms"),
    *("connections_max_idle_ms", "metadata_max_age_ms", "fetch_max_wait_ms", "fetch_min_bytes"),
    *("fetch_max_bytes", "max_partition_fetch_bytes", "receive_buffer_bytes", "send_buffer_bytes"),
)
_CLIENT_TEXTS = (
    *("sasl_plain_username", "sasl_plain_password", "sasl_kerberos_service_name"),
    *("sasl_kerberos_domain_name", "ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_crlfile", "client_id", "client_rack", "api_version"),
)
NUMBERS |= {f"ClientOptions.{name}": ">= 1, < 2147483648" for name in _CLIENT_NUMBERS}
NUMBERS |= {f"ClientOptions.{name}": "length >= 1" for name in _CLIENT_TEXTS}
_STORAGE_TEXTS = ("key", "secret", "token", "endpoint_url")
NUMBERS |= {f"StorageOptions.{name}": "length >= 1" for name in _STORAGE_TEXTS}


def said(field: dict[str, Any]) -> Iterator[str]:
    for part in [field, *field.get("anyOf", []), field.get("items", {})]:
        for word, sign in WORDS.items():
            value = part.get(word)
            if value not in (None, "", []) and not isinstance(value, dict | bool):
                yield f"{sign} {value}"


def test_defaults_and_bounds() -> None:
    found = {
        f"{name}.{key}": ", ".join(said(field))
        for name, model in json_schema(installed_kinds())["$defs"].items()
        for key, field in model.get("properties", {}).items()
    }
    assert {key: rule for key, rule in found.items() if re.search(r"\d", rule)} == NUMBERS


def test_what_a_schema_does_not_show() -> None:
    assert MixtureSpec().memory_tower.hidden == (32, 16)
    assert FailoverSpec(heartbeat_timeout=timedelta(seconds=1)).heartbeat_timeout.seconds == 1
    with pytest.raises(ValidationError, match="every process would count as dead"):
        FailoverSpec(heartbeat_timeout=timedelta(milliseconds=999))
    for allowed in ("5s", "1d"):
        assert ProgressDeadlinesSpec.model_validate(dict.fromkeys(ROLES, allowed)).data
    for role in ROLES:
        for refused in ("4s", "25h"):
            with pytest.raises(ValidationError, match=f"{refused}: must be between 5s and 1d"):
                ProgressDeadlinesSpec.model_validate({role: refused})
    assert RuntimeSpec(environment=("ACME_TOKEN", "_x9*", "*")).environment[2] == "*"
    for refused in ("", "9A", "A-B", "A=b", "A**", "*A", "${A}", " A"):
        with pytest.raises(ValidationError, match="write the name of a variable"):
            RuntimeSpec(environment=("A", refused))
    assert RolesSpec.model_validate({"trainer": {"count": 1}}).trainer.count == 1
    with pytest.raises(ValidationError, match="count is 2, but a job has one trainer"):
        RolesSpec.model_validate({"trainer": {"count": 2}})


def test_a_gate_needs_judged_rows() -> None:
    declared = {"publish": {"when": "gate"}, "judge_rows_max": 0}
    with pytest.raises(ValidationError, match="change one of them"):
        JobSpec.model_validate(declared)
    assert JobSpec.model_validate(declared | {"judge_rows_max": 1}).publish.metric == "auc"


@pytest.mark.parametrize(
    ("slices", "words"),
    [
        (["nothing"], "'nothing' is not a feature: user, price"),
        *((["price"], "feature 'price' is numeric"), (["user", "user"], "lists a feature twice")),
    ],
)
def test_slices_name_features_with_ids(slices: list[str], words: str) -> None:
    declared = {
        "start": "2026-03-01",
        "event_id": "event",
        "label": {"column": "clicked"},
        "streams": {"all": {"sources": ["s"]}},
        "features": {"user": {"encode": "hash", "buckets": 9}, "price": {"encode": "numeric"}},
    }
    assert DatasetSpec.model_validate(declared | {"slices": ["user"]}).slices == ["user"]
    with pytest.raises(ValidationError, match=words):
        DatasetSpec.model_validate(declared | {"slices": slices})
