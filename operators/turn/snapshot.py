"""What a model line's files say about whose turn it is: seen cheaply, decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.executors.model_line.lease import LEASE_NAME
from forebay.home.paths import Home
from forebay.system.locks import is_held

_LINKS = "g*/window.json"


@dataclass(frozen=True)
class TurnFiles:
    """The lease of a line, the folder of the window before, and the mark of runs that failed.

    A glance for whoever waits: what changes here makes `forebay stage submit` worth a call, and
    only that call decides.
    """

    lease: Path
    before: Path
    failures: Path

    @classmethod
    def of(cls, home: str, dag_id: str, pipeline: str, line: str, before: str) -> TurnFiles:
        """Of a DAG's runs and a pipeline's line below a FOREBAY_HOME."""
        place = Home(Path(home))
        folder = place.line(pipeline, line)
        return cls(folder / LEASE_NAME, folder / before, place.failed_runs(dag_id))

    def held(self) -> bool:
        """Whether a job trains the line now."""
        return is_held(self.lease)

    def links(self) -> list[str]:
        """Generations of the window before that are trained."""
        return sorted(path.parent.name for path in self.before.glob(_LINKS))

    def failed_at(self) -> float:
        """When a run of the DAG failed last, as `time.time` counts; 0 when none did."""
        try:
            return self.failures.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def seen(self) -> dict[str, Any]:
        """All of it, to be compared with what is seen later."""
        return {"held": self.held(), "links": self.links(), "failed_at": self.failed_at()}
