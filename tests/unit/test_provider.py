"""Forebay as Airflow sees it once it is installed: a provider, a plugin, a section of settings."""

from __future__ import annotations

import importlib.util
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from support.python_code import printed_json
from support.there import there

from forebay import __version__
from forebay.provider import get_provider_info

ASK = """
import json
from airflow.providers_manager import ProvidersManager
from airflow import plugins_manager
from airflow.configuration import conf
from airflow.listeners.listener import get_listener_manager

hooks = get_listener_manager().hook
manager = ProvidersManager()
info = manager.providers["forebay"]
print(json.dumps({
    "version": info.version,
    "name": info.data["name"],
    "links": sorted(manager.extra_links_class_names),
    "timetables": sorted(plugins_manager.get_timetables_plugins()),
    "failed": [each.plugin.__name__ for each in hooks.on_dag_run_failed.get_hookimpls()],
    "home": conf.get("forebay", "home"),
    "python": conf.get("forebay", "python"),
}))
"""


def ask(home: Path, **settings: str) -> dict[str, Any]:
    kept = {key: value for key, value in os.environ.items() if "AIRFLOW" not in key}
    return printed_json(ASK, {**kept, "AIRFLOW_HOME": str(home), **settings})


def test_the_description_is_what_airflow_expects_and_its_links_are_there() -> None:
    airflow = there(there(importlib.util.find_spec("airflow")).origin)  # found, not imported
    schema = json.loads(Path(airflow).with_name("provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)
    links = files("forebay.operators").joinpath("links.py").read_text()
    for path in get_provider_info()["extra-links"]:
        module, _, name = path.rpartition(".")
        assert module == "forebay.operators.links"
        assert f"class {name}(BaseOperatorLink):" in links


def test_airflow_finds_everything_by_entry_points(tmp_path: Path) -> None:
    found = ask(tmp_path, AIRFLOW__FOREBAY__PYTHON="/srv/python")
    assert (found["name"], found["version"]) == ("Forebay", __version__)
    assert "forebay.operators.links.TrainingLink" in found["links"]
    assert "forebay.operators.timetable.WindowTimetable" in found["timetables"]
    assert "forebay.operators.runs.run_listener" in found["failed"]
    assert (found["home"], found["python"]) == ("", "/srv/python")
