"""Limits of declarations that docs/reference.md, which a guard compares, does not show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from forebay.config.schema import json_schema
from forebay.config.specs.datasets import DatasetSpec
from forebay.config.specs.features import BucketiseFeature
from forebay.config.specs.jobs import (
    FailoverSpec,
    JobSpec,
    ProgressDeadlinesSpec,
    RolesSpec,
    RuntimeSpec,
)
from forebay.config.specs.pipelines import ScheduleSpec
from forebay.config.specs.registry import installed_kinds

ROLES = ("driver", "data", "trainer")
WORDS = {"minLength": "length >=", "maxLength": "length <="}
WORDS |= {"minItems": "items >=", "maxItems": "items <="}
WORDS |= {"minProperties": "keys >=", "maxProperties": "keys <="}
SIZES = {
    "BucketiseFeature.boundaries": "items >= 1",
    "CrossFeature.columns": "items >= 2",
    "CsvOptions.names": "items >= 1",
    "DatasetSpec.features": "keys >= 1",
    "DatasetSpec.named_labels": "keys <= 8",
    "DatasetSpec.slices": "items <= 8",
    "DatasetSpec.streams": "keys >= 1",
    "IcebergOptions.catalog": "keys >= 1",
    "ScheduleSpec.owner": "length >= 1, length <= 500",
    "ScheduleSpec.pool": "length >= 1, length <= 256",
    "ScheduleSpec.tags": "items <= 100, length >= 1, length <= 100",
    "SourceSpec.columns": "keys >= 1",
    "StreamSpec.sources": "items >= 1",
    "VocabularyFeature.values": "items >= 1",
}
_TEXTS = {
    "ClientOptions": "sasl_plain_username sasl_plain_password sasl_kerberos_service_name "
    "sasl_kerberos_domain_name ssl_cafile ssl_certfile ssl_keyfile ssl_password ssl_crlfile "
    "client_id client_rack api_version",
    "IcebergOptions": "table",
    "KafkaOptions": "bootstrap message_type schema_file topic",
    "LogOptions": "path moved",
    "MemoryOptions": "table",
    "StorageOptions": "key secret token endpoint_url",
}
_TEXTS |= dict.fromkeys(
    ("CsvOptions", "JsonOptions", "ParquetOptions", "TfrecordOptions"), "path window_path"
)
for _name, _keys in _TEXTS.items():
    SIZES |= {f"{_name}.{_key}": "length >= 1" for _key in _keys.split()}


def said(field: dict[str, Any]) -> Iterator[str]:
    for part in [field, *field.get("anyOf", []), field.get("items", {})]:
        for word, sign in WORDS.items():
            value = part.get(word)
            if value is not None:
                yield f"{sign} {value}"


def test_sizes_that_the_reference_does_not_show() -> None:
    found = {
        f"{name}.{key}": ", ".join(said(field))
        for name, model in json_schema(installed_kinds())["$defs"].items()
        for key, field in model.get("properties", {}).items()
    }
    assert {key: rule for key, rule in found.items() if rule} == SIZES


def test_what_a_schema_does_not_show() -> None:
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
    assert ScheduleSpec.model_validate({"grace": "0s"}).grace == timedelta(0)
    for key in ("plan_timeout", "train_timeout"):
        with pytest.raises(ValidationError, match="no stage can finish in so little time"):
            ScheduleSpec.model_validate({key: "0s"})
    assert BucketiseFeature(encode="bucketise", boundaries=[1, 2]).boundaries == [1, 2]
    for boundaries in ([2, 1], [1, 1], [1, 3, 2]):
        with pytest.raises(ValidationError, match="boundaries must ascend"):
            BucketiseFeature(encode="bucketise", boundaries=boundaries)


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
