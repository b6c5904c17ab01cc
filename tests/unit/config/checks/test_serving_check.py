"""Serving paths as they are declared: what is a path, and whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.projects import ads_pipeline, declared_project

from forebay.config.load import load_project
from forebay.config.specs.jobs import PublishSpec


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "../", "models/..", "models\n", "~/models", "gs://bucket/models"),
        *("s3://bucket", "s3:///models", "s3:/bucket/models", "s3://bucket/x?foo=1"),
        *("s3://bucket/a//b", "s3://bucket_/x", "s3://key:hidden@bucket/models"),
        *("models/{window}", "models/{line}/{line}", "models/{line"),
    ],
)
def test_what_is_no_path_is_refused_and_not_shown(path: str) -> None:
    with pytest.raises(ValidationError) as refused:
        PublishSpec.model_validate({"serving": path})
    told = refused.value.errors(include_input=False, include_url=False)[0]["msg"]
    assert ("write the path" in told or "only {line}" in told, "hidden" in told) == (True, False)


@pytest.mark.parametrize(
    "path", ["models", "/srv/ads/{line}", "s3://bucket/a/{line}?region=eu", "../m"]
)
def test_paths(path: str) -> None:
    assert PublishSpec.model_validate({"serving": path}).serving == path


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("models/ads", "./models/ads/", True),
        ("models", "models/ads", True),
        ("s3://bucket/ads?region=x", "s3://bucket/ads/", True),
        ("s3://bucket/a b", "s3://bucket/a%20b", True),
        ("s3://bucket/a?endpoint_override=x", "s3://bucket/a?endpoint_override=y", False),
        ("models/{line}", "models/main", True),
        ("models/ads", "models/ads2", False),
        ("s3://bucket/ads", "models/ads", False),
    ],
)
def test_two_pipelines_never_share_a_path(
    tmp_path: Path, one: str, other: str, shared: bool
) -> None:
    declared = [ads_pipeline("towers", publish={"serving": path}) for path in (one, other)]
    project = declared_project(tmp_path, declared[0])
    project._write("pipelines/later.yaml", declared[1])
    loaded = load_project(tmp_path / "config")
    assert ("later" in loaded.pipelines, "ads" in loaded.pipelines) == (not shared, True)
    told = [problem.message for problem in loaded.problems if problem.code == "serving-shared"]
    assert [("'ads'" in each, "'later'" in each) for each in told] == [(True, True)] * shared


def test_a_model_that_counts_serves_nothing(tmp_path: Path) -> None:
    declared_project(tmp_path, ads_pipeline(publish={"serving": "models"}))
    assert [each.code for each in load_project(tmp_path / "config").problems] == ["serving-count"]
