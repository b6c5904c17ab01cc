"""Notices changed YAML files, and writes DAG files again."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forebay.config.yaml.files import SUFFIXES
from forebay.embedded.airflow.components import Component, sync_component
from forebay.embedded.layout import Layout

SYNC_SECONDS = 60.0
_FOLDERS = ("pipelines", "sources")
_STUBS = re.compile(r"-[0-9a-f]{8}$")
Signature = tuple[tuple[str, int, int, int], ...]


def signature(config_dirs: Sequence[Path]) -> Signature:
    """A value that changes when a YAML file is added, removed or written; cheap to compute."""
    folders = [config_dir / kind for config_dir in config_dirs for kind in _FOLDERS]
    found = []
    for path in (path for folder in folders for path in sorted(folder.glob("*"))):
        if path.suffix in SUFFIXES:
            try:
                facts = path.stat()
            except OSError:  # a link to nothing or to itself, or removed since it was listed
                found.append((str(path), 0, 0, 0))
                continue
            found.append((str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns))
    return tuple(found)


@dataclass
class _Sync:
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int
    deadline: float


@dataclass
class ConfigWatch:
    """Configuration folders of a running Airflow. Nothing here waits."""

    layout: Layout
    config_dirs: Sequence[Path]
    launch: Callable[[Component], subprocess.Popen[bytes]]
    _seen: Signature | None = None
    _written: Signature | None = None
    _running: list[_Sync] = field(default_factory=list)
    _errors: list[str] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Why DAG files could not be written last time."""
        return "; ".join(self._errors) or None

    @property
    def settled(self) -> bool:
        """Whether DAG files match the YAML files of the last look, or failed to be written."""
        return not self._running and self._written is not None

    def remove_others(self) -> None:
        """Remove DAG files of configuration folders that only an earlier start had."""
        kept = {self.layout.stubs(folder) for folder in self.config_dirs}
        for path in self.layout.dags.iterdir():
            if path.is_dir() and _STUBS.search(path.name) and path not in kept:
                shutil.rmtree(path)

    def look(self) -> None:
        """Start writing if something changed and then stayed the same for one look."""
        self._running = [one for one in self._running if not self._ended(one)]
        if self._running:
            return
        now = signature(self.config_dirs)
        settled = now == self._seen
        self._seen = now
        if self._written is None or (settled and now != self._written):
            self._written = now
            self._errors = []
            self._running = [self._start(folder) for folder in self.config_dirs]

    def _start(self, config_dir: Path) -> _Sync:
        component = sync_component(self.layout, config_dir)
        log = self.layout.log(component.name)
        start = log.stat().st_size if log.exists() else 0
        return _Sync(self.launch(component), log, start, time.monotonic() + SYNC_SECONDS)

    def _ended(self, sync: _Sync) -> bool:
        if sync.process.poll() is None:
            if time.monotonic() < sync.deadline:
                return False
            sync.process.kill()
            sync.process.wait()
        if sync.process.returncode != 0:
            said = sync.log.read_bytes()[sync.log_start :].decode(errors="replace").split("\n")
            last = next((line for line in reversed(said) if line.strip()), f"see {sync.log}")
            self._errors.append(last)
        return True
