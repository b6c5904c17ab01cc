"""Processes of a job that fail with secrets of their environment in the message of the error.

A folder on PYTHONPATH holds a `sitecustomize`, which Python runs at every start: it changes the one
process that is named.
"""

from __future__ import annotations

from pathlib import Path

_ROLE, _NAMES = "FOREBAY_PLANTED_ROLE", "FOREBAY_PLANTED_NAMES"
# Process -> where its work begins.
BODIES = {
    "supervisor": ("forebay.executors.supervisor.supervisor", "Supervisor", "_gathered"),
    "driver": ("forebay.executors.driver.driver", "Driver", "start"),
    "data_executor": ("forebay.executors.data_executor.executor", "DataExecutor", "run"),
    "trainer": ("forebay.executors.trainer.loop", "WindowTrainer", "train"),
}
_CODE = f"""
import importlib, os, sys

BODIES = {BODIES!r}

def fail(*_, **__):
    values = [os.environ.get(name, "") for name in os.environ["{_NAMES}"].split(",")]
    raise RuntimeError("planted: " + " and ".join(values))

role = os.environ.get("{_ROLE}", "")
if role and f"forebay.executors.{{role}}" in sys.orig_argv:
    module, kind, name = BODIES[role]
    setattr(getattr(importlib.import_module(module), kind), name, fail)
"""


def plant(folder: Path, role: str, names: list[str]) -> dict[str, str]:
    """The environment in which the processes of a role fail; the message has these variables."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_CODE)
    return {"PYTHONPATH": str(folder), _ROLE: role, _NAMES: ",".join(names)}
