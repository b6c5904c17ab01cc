"""AIRFLOW, STREAM, KILL and WAIT."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from examples.demo.settings import Settings
from forebay.errors import UsageError


def test_defaults() -> None:
    settings = Settings.of(dict.fromkeys(("AIRFLOW", "STREAM", "KILL", "WAIT"), ""))
    assert (settings.airflow, settings.kafka, settings.kill) == (True, False, False)
    assert (settings.wait, settings.home.root) == (timedelta(hours=9), Path(".forebay").absolute())


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"STREAM": "kafka"}, ".forebay-kafka"),
        ({"KILL": "1"}, ".forebay-kill"),
        ({"WAIT": "3h"}, ".forebay-wait-3h"),
        ({"STREAM": "kafka", "KILL": "1", "WAIT": "90m"}, ".forebay-kafka-kill-wait-90m"),
        ({"WAIT": "540m"}, ".forebay"),
        ({"AIRFLOW": "0"}, ".forebay"),
        ({"FOREBAY_HOME": "/somewhere/else", "KILL": "1"}, "/somewhere/else-kill"),
    ],
)
def test_every_way_has_its_own_home(environ: dict[str, str], name: str) -> None:
    assert Settings.of(environ).home.root == Path(name).absolute()


@pytest.mark.parametrize("wrong", ["STREAM=kafak", "KILL=yes", "WAIT=3", "AIRFLOW=no"])
def test_other_values_are_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        Settings.of(dict([wrong.split("=")]))
