"""Who follows the streams of pipelines that declare it, in the place of `forebay run --follow`."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forebay.embedded.airflow.components import FOLLOW, follower_component
from forebay.embedded.keeper.component_group import ComponentGroup
from forebay.embedded.layout import Layout

STOP_SECONDS = 5.0
_LOG = logging.getLogger(__name__)


@dataclass
class Followers:
    """One process a pipeline, started anew when its declaration is another one."""

    layout: Layout
    config_dirs: Sequence[Path]
    components: ComponentGroup
    _running: dict[str, tuple[Path, str]] = field(default_factory=dict)

    def look(self) -> None:
        """Call it once DAG files are as declared."""
        wanted = {
            name: (folder, digest)
            for folder in self.config_dirs
            for name, digest in self._declared(folder).items()
        }
        gone = [name for name, one in self._running.items() if wanted.get(name) != one]
        if gone:
            _LOG.info("declared otherwise now: %s", ", ".join(gone))
            self._stop(gone)
        for name, one in wanted.items():
            if name not in self._running:
                self.components.start(follower_component(name, one[0]))
                self._running[name] = one

    def stop(self) -> None:
        self._stop(list(self._running))

    def _stop(self, names: Sequence[str]) -> None:
        self.components.stop([f"{FOLLOW}{name}" for name in names], STOP_SECONDS)
        for name in names:
            self.components.forget(f"{FOLLOW}{name}")
            del self._running[name]

    def _declared(self, folder: Path) -> dict[str, str]:
        path = self.layout.followed(folder)
        return json.loads(path.read_text()) if path.exists() else {}
