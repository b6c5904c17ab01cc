"""GateDecision: which variant the gate let serve, and why. Light: a stage reads it."""

from __future__ import annotations

from pydantic import Field

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.open_store import store_of
from forebay.system.message import Message

GATE_FILE = "gate.json"


class GateDecision(Message):
    """Which variant of a window serves, and why. It is stored beside the model that serves.

    words: for people. windows: those whose event scores decided; none if too little is judged.
    rows: how many judged rows they have.
    """

    variant: str
    declared: str
    words: str
    windows: list[str] = Field(default_factory=list)
    rows: int = 0

    @property
    def replaces(self) -> bool:
        """Whether a variant other than the declared one serves."""
        return self.variant != self.declared


def gate_decision(chain: ModelChain, link: Link) -> GateDecision | None:
    """The gate's decision on a link whose model was exported; None where there was no gate.

    Raises:
        DataError: when the stored decision is missing or damaged.
    """
    stored = link.files.get("gate")
    if stored is None:
        return None
    return GateDecision.model_validate_json(store_of(chain.home).path(stored).read_bytes())
