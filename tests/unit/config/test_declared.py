"""What is stored of declarations: the text as written, filled in by the process that needs it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from support.projects import ads_pipeline, clicks_source, history_source
from support.there import there

from forebay.config.declared import Declared, as_written, filled_in
from forebay.config.load import load_project
from forebay.errors import ConfigError

ENVIRONMENT = {"SASL": "planted-sasl", "ROWS": "256", "START": "2026-03-01"}
CLIENT = "options:\n  bootstrap: ${BROKER:-b:9092}\n  topic: clicks\n  client:\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    config = tmp_path / "config"
    (config / "sources").mkdir(parents=True)
    (config / "pipelines").mkdir()
    clicks = clicks_source(kind="kafka", starts="${START}")
    del clicks["options"]
    (config / "sources" / "clicks.yaml").write_text(
        f"{CLIENT}    sasl_plain_password: ${{SASL}}\n    sasl_plain_username: '$${{PLAIN}}'\n"
        "    security_protocol: SASL_SSL\n    sasl_mechanism: PLAIN\n" + yaml.safe_dump(clicks)
    )
    history = yaml.safe_dump(history_source()).replace("'2026-02-28'", "2026-02-28")
    (config / "sources" / "history.yaml").write_text(history)
    pipeline = ads_pipeline()
    pipeline["train"] = {"minibatch_rows": "${ROWS}"}
    (config / "pipelines" / "ads.yaml").write_text(yaml.safe_dump(pipeline))
    return config


@pytest.fixture
def declared(project: Path) -> Declared:
    return there(load_project(project, ENVIRONMENT).declared("ads"))


def test_what_is_written_is_kept_and_nothing_of_the_environment(
    project: Path, declared: Declared
) -> None:
    clicks = declared.sources["clicks"]
    written = {"sasl_plain_password": "${SASL}", "sasl_plain_username": "$${PLAIN}"}
    assert clicks["options"]["client"].items() >= written.items()
    train = declared.pipeline["train"]
    assert (clicks["starts"], train["minibatch_rows"]) == ("${START}", "${ROWS}")
    assert declared.sources["history"]["starts"] == "2026-02-28", "a date of YAML, as JSON has it"
    assert "planted" not in json.dumps([declared.pipeline, declared.sources])
    places = {(each.source, each.path[-1]): each for each in declared.references}
    names = ("bootstrap", "sasl_plain_password", "sasl_plain_username", "starts")
    assert set(places) == {("", "minibatch_rows"), *(("clicks", name) for name in names)}
    password = places["clicks", "sasl_plain_password"]
    assert password.place == f"{project / 'sources' / 'clicks.yaml'}:5:26"
    assert password.is_option
    assert not places["clicks", "starts"].is_option


def test_it_is_filled_in_as_the_files_were(project: Path, declared: Declared) -> None:
    loaded = load_project(project, ENVIRONMENT)
    for name in ("clicks", "history"):
        mine = [each for each in declared.references if each.source == name]
        filled = filled_in(declared.sources[name], mine, ENVIRONMENT, "the driver")
        spec = loaded.sources[name]
        assert type(spec).model_validate({"name": name, **filled}) == spec
    assert loaded.sources["clicks"].options["bootstrap"] == "b:9092"
    assert loaded.sources["clicks"].options["client"]["sasl_plain_username"] == "${PLAIN}"
    assert loaded.sources["clicks"].starts == datetime(2026, 3, 1, tzinfo=UTC)


def test_a_missing_variable_is_named_with_place_key_and_process(
    project: Path, declared: Declared
) -> None:
    mine = [each for each in declared.references if each.source == "clicks"]
    with pytest.raises(ConfigError) as raised:
        filled_in(declared.sources["clicks"], mine, {"START": "2026-03-01"}, "the driver")
    assert str(raised.value) == (
        f"{project / 'sources' / 'clicks.yaml'}:5:26: options.client.sasl_plain_password: variable "
        "SASL is not set for the driver: set it where the job is submitted, or write "
        "${SASL:-default}"
    )


def test_some_variables_are_settled_for_good(project: Path, declared: Declared) -> None:
    settled = declared.settled({"SASL", "BROKER", "ROWS"}, {"SASL": "a${b"})
    clicks = settled.sources["clicks"]
    assert clicks["options"]["client"]["sasl_plain_password"] == "a$${b"
    assert clicks["options"]["bootstrap"] == "b:9092", "the default, which stands in YAML"
    assert clicks["starts"] == "${START}"
    assert settled.pipeline["train"]["minibatch_rows"] == "${ROWS}", "it is not set here"
    mine = [each for each in settled.references if each.source == "clicks"]
    filled = filled_in(clicks, mine, {"START": "2026-03-01"}, "it")
    assert filled["options"]["client"]["sasl_plain_password"] == "a${b"


def test_a_dump_is_shown_as_it_was_written() -> None:
    dumped = {"a": {"b": 256}, "list": ["x", "planted"], "default": "planted"}
    written = {"a": {"b": "${B}"}, "list": ["x", "${C}"]}
    assert as_written(dumped, written) == written | {"default": "planted"}
