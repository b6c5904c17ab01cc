"""Data of the demo that is built once and reused by later runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from forebay.system.files.durable import write_atomically

_MARKER = "built.json"


class _Built(Protocol):
    """A dataclass that describes what was built. content: what it was built from and by."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def content(self) -> str: ...


T = TypeVar("T", bound=_Built)


def build_once(
    folder: Path, content: str, kind: Callable[..., T], build: Callable[[], T]
) -> tuple[T, bool]:
    """Build into an empty folder, or reuse what is there; and whether it was reused.

    The marker is written last, so data left by an interrupted run is built again.

    Args:
        folder: a folder that holds nothing but this data.
        content: identifies the wanted data; any other data is removed.
        kind: constructed from the marker's keys.
        build: fills the folder and describes what it wrote.
    """
    marker = folder / _MARKER
    if marker.is_file():
        found = json.loads(marker.read_text())
        if found.get("content") == content:
            return kind(**found), True
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    built = build()
    write_atomically(marker, json.dumps(asdict(built), indent=1))
    return built, False
