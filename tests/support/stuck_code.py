"""Code of a role that blocks for ever at a chosen call, in the kernel, in the real process.

Or dies there, by SIGKILL.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from support.projects import Project

# Python runs it when an interpreter starts, before anything of ours.
_CUSTOMIZE = """
import importlib, json, os, signal, sys
from pathlib import Path

SETTINGS = json.loads(Path(__file__).with_name("places.json").read_text())


def stick(module, name, call, marker):
    owner = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    real, calls = getattr(owner, last), 0

    def stuck(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call and not (marker and Path(marker).exists()):
            if marker:
                Path(marker).touch()
            if SETTINGS["dies"]:
                os.kill(os.getpid(), signal.SIGKILL)
            os.read(os.pipe()[0], 1)
        return real(*arguments, **options)

    setattr(owner, last, stuck)


for role, *place in SETTINGS["places"]:
    if f"forebay.executors.{role}" in sys.orig_argv:
        stick(*place)
"""


def stick(
    project: Project,
    folder: Path,
    *places: tuple[str, str, int],
    always: bool = False,
    dies: bool = False,
) -> None:
    """From the next start on, some calls of functions do not return.

    places: the room of a role, `module:function` of it, and at which call. The first process that
    comes to it stops there, later ones do not; always: each does. dies: instead of blocking.
    folder: for the code that does.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_CUSTOMIZE)
    written = []
    for number, (role, place, call) in enumerate(places):
        marker = None if always else str(folder / f"{number}.stuck")
        written.append([role, *place.split(":"), call, marker])
    (folder / "places.json").write_text(json.dumps({"places": written, "dies": dies}))
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    project.environment["PYTHONPATH"] = os.pathsep.join(path)
