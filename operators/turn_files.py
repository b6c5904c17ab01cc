"""What a model line's files say about whose turn it is: seen cheaply, decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.executors.line_lease import LEASE_NAME
from forebay.executors.locks import is_held
from forebay.home import Home

_LINKS = "g*/window.json"


@dataclass(frozen=True)
class TurnFiles:
    """The lease of a line, and the folder of the window before.

    A glance for whoever waits: what changes here makes `forebay stage submit` worth a call, and
    only that call decides.
    """

    lease: Path
    before: Path

    @classmethod
    def of(cls, home: str, pipeline: str, line: str, before: str) -> TurnFiles:
        """Of a pipeline's line below a FOREBAY_HOME."""
        folder = Home(Path(home)).line(pipeline, line)
        return cls(folder / LEASE_NAME, folder / before)

    def held(self) -> bool:
        """Whether a job trains the line now."""
        return is_held(self.lease)

    def links(self) -> list[str]:
        """Generations of the window before that are trained."""
        return sorted(path.parent.name for path in self.before.glob(_LINKS))

    def seen(self) -> dict[str, Any]:
        """All of it, to be compared with what is seen later."""
        return {"held": self.held(), "links": self.links()}
