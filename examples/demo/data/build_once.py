"""Data of the demo that is built once and reused by later runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from forebay.system.files.durable import write_atomically

_MARKER = "built.json"

T = TypeVar("T")


def build_once(
    folder: Path, content: str, kind: Callable[..., T], build: Callable[[], T]
) -> tuple[T, bool]:
    """Build into an empty folder, or reuse what is there; and whether it was reused.

    The marker is written last, so data left by an interrupted run is built again.

    content: identifies the wanted data; any other data is removed.
    kind: a dataclass with a field `content`; the marker has its fields.
    """
    marker = folder / _MARKER
    if marker.is_file():
        found = json.loads(marker.read_text())
        if found.get("content") == content:
            return kind(**found), True
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    built = build()
    write_atomically(marker, json.dumps(vars(built), indent=1))
    return built, False
