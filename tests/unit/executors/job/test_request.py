"""A job's request: contains no secrets, and a changed secret does not make another request."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from support.projects import ads_pipeline, clicks_source, history_source

from forebay.config.load import load_project
from forebay.errors import ConfigError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.system.output.redaction import redacted

SECRET = "planted-sasl-password"


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("SASL", SECRET)
    monkeypatch.setenv("ROWS", "256")
    monkeypatch.setenv("STARTS", "2026-03-01")
    monkeypatch.setenv("FOREBAY_HOME", "relative/home")
    return monkeypatch


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder, pipeline = tmp_path / "config", ads_pipeline()
    pipeline["train"] = {"minibatch_rows": "${ROWS}"}
    client = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    client |= {"sasl_plain_username": "u", "sasl_plain_password": "${SASL}"}
    options = {"bootstrap": "b:1", "topic": "t", "client": client}
    declared = {
        "pipelines/ads": pipeline,
        "sources/clicks": clicks_source(kind="kafka", options=options, starts="${STARTS}"),
        "sources/history": history_source(
            options={"path": "${FOREBAY_HOME:-.forebay}/data/${PART:-history}"}
        ),
    }
    for name, value in declared.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(value))
    return folder


def made(config: Path) -> JobRequest:
    """A request of what is declared, as the environment is now."""
    project = load_project(config)
    return JobRequest.of(
        "job",
        config.parent / "home",
        project.root,
        project.pipeline("ads"),
        project.sources,
        [],
        declared=project.declared("ads"),
    )


def stored(config: Path, tmp_path: Path) -> JobRequest:
    """What a process of the job reads."""
    folder = tmp_path / "home" / "jobs" / "job"
    folder.mkdir(parents=True, exist_ok=True)
    JobFolder(folder).write(made(config))
    return JobFolder(folder).request("the data executor")


def test_values_are_not_stored(env: pytest.MonkeyPatch, config: Path, tmp_path: Path) -> None:
    found = stored(config, tmp_path)
    text = (tmp_path / "home" / "jobs" / "job" / "job.json").read_text()
    assert SECRET not in text
    assert json.loads(text)["pipeline"]["train"]["minibatch_rows"] == "${ROWS}"
    clicks = found.sources_to_open(["clicks"])["clicks"]
    assert clicks.options["client"]["sasl_plain_password"] == SECRET
    assert found.pipeline_spec().train.minibatch_rows == 256
    assert found.source_specs()["clicks"].options["client"]["sasl_plain_password"] == "${SASL}"


@pytest.mark.guarantee(
    "a variable that a process of a job does not have",
    "an error with file, line, key and process, if the process needs it",
)
def test_a_process_needs_only_what_it_uses(
    env: pytest.MonkeyPatch, config: Path, tmp_path: Path
) -> None:
    found = stored(config, tmp_path)
    env.delenv("SASL")
    assert found.source_specs()["clicks"].starts is not None
    assert found.sources_to_open(["history"])
    with pytest.raises(ConfigError, match=r"clicks\.yaml:\d+:\d+: .*SASL is not set for the dat"):
        found.sources_to_open(["clicks"])


def test_the_home_is_the_submitters(env: pytest.MonkeyPatch, config: Path, tmp_path: Path) -> None:
    """Planning has read below a relative home, and the processes of the job have another one."""
    found = stored(config, tmp_path)
    env.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    path = found.sources_to_open(["history"])["history"].options["path"]
    assert path == "relative/home/data/history"


@pytest.mark.guarantee(
    "a password that changes between two requests for the same job", "it is the same job"
)
def test_another_password_makes_no_other_job_and_another_setting_does(
    env: pytest.MonkeyPatch, config: Path
) -> None:
    before = made(config).fingerprint
    env.setenv("SASL", "another-password")
    assert made(config).fingerprint == before
    env.setenv("ROWS", "512")
    changed = made(config).fingerprint
    assert changed != before
    env.setenv("ROWS", "256")
    env.setenv("STARTS", "2026-02-01")
    assert made(config).fingerprint not in {before, changed}


def test_what_is_written_in_options_counts(env: pytest.MonkeyPatch, config: Path) -> None:
    before, path = made(config).fingerprint, config / "sources" / "clicks.yaml"
    path.write_text("# a line that moves all others\n" + path.read_text())
    assert made(config).fingerprint == before
    path.write_text(path.read_text().replace("${SASL}", "${ROWS}"))
    assert made(config).fingerprint != before


def test_it_shows_no_other_secret(env: pytest.MonkeyPatch, config: Path, tmp_path: Path) -> None:
    env.setenv("SASL", "planted-and-never-filled-in")
    stored(config, tmp_path)
    assert redacted("it is planted-and-never-filled-in") == "it is ${SASL}"


def test_the_last_hours_of_a_warm_start_are_a_phase_of_their_own() -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    end = start + timedelta(days=2)
    window = WindowRequest(key="2026-03-01", generation=1, start=start, end=end)
    assert {window.phase_at(hour, 24) for hour in range(48)} == {"window"}
    warm = window.model_copy(update={"warm_start": True})
    found = [warm.phase_at(hour, 24) for hour in range(48)]
    assert found == ["warm_start"] * 24 + ["warm_start_end"] * 24
    assert {warm.phase_at(hour, 0) for hour in range(48)} == {"warm_start"}
    assert {warm.phase_at(hour, 72) for hour in range(48)} == {"warm_start_end"}
