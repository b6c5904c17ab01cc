"""The base of everything that crosses a process border as JSON, in a call or in a file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """Immutable; unknown fields are errors, so that two versions never half understand each other.

    Light on purpose: whatever reads a file or a reply imports neither Arrow nor NumPy.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
