"""What `forebay stage NAME` prints: one line of JSON for its caller, such as an operator.

Light on purpose: whatever reads these results imports neither Arrow nor TensorFlow.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from forebay.system.message import Message
from forebay.system.names import ONE_LINE_RULE, is_one_line, shown
from forebay.system.output.redaction import ShownText


def _one_line(text: str) -> str:
    if not is_one_line(text):
        raise ValueError(f"{shown(text)}: {ONE_LINE_RULE}")
    return text


class RequestedWindow(Message):
    """A window that a run waits for at this moment, and in which pass.

    asked_by: `<run>#<clear number>`: a listing that was made for one pass serves no other.
    """

    window: str
    asked_by: Annotated[str, AfterValidator(_one_line)]


class TimerResult(Message):
    """Whether a window has to run. `trained`: this generation is trained, so nothing runs.

    again: it is trained, and is to be trained once more.
    """

    state: Literal["open", "trained"]
    window: str
    generation: int | None = None
    reason: ShownText
    next: str = ""
    again: bool = False


class SourceResult(Message):
    """One source of one window.

    state: `waiting` until its data is complete, or until `deadline`. rows: None where only reading
    can count. storage_calls: of this call; 0 where another window's scan found the tasks.
    windows_scanned: how many windows the scan covered.
    """

    state: Literal["listed", "waiting"]
    window: str
    source: str
    reason: ShownText = ""
    deadline: datetime | None = None
    rows: int | None = None
    tasks: int = 0
    files: int = 0
    storage_calls: int = 0
    windows_scanned: int = 0
    fingerprint: str = ""


class SinkResult(Message):
    """A recorded window: rows by source (None where only reading can count)."""

    window: str
    generation: int
    tasks: int
    rows: dict[str, int | None] = Field(default_factory=dict)
    fingerprint: str = ""
    recorded: bool
    notes: list[str] = Field(default_factory=list)


class SubmitResult(Message):
    """A job that trains one window, or why there is none yet.

    state: `trained` when nothing is left to do; `waiting` for the window before or for the line.
    warnings: for people, about what the job starts from.
    """

    state: Literal["submitted", "trained", "waiting"]
    window: str
    reason: ShownText = ""
    job_id: str = ""
    epoch: int = 0
    generation: int = 0
    warnings: list[ShownText] = Field(default_factory=list)


class EvaluateResult(Message):
    """Metrics of one window by paradigm and name.

    rows: trained on, by source. label_not_known: rows that were left out because their label was
    not known when the window ended, by source; sources with none are absent. labels_not_known:
    rows that were trained on only for other labels, by label and source.
    event: event scores of the window by variant or tower and name. completed: those of earlier
    windows whose last complete labels came with this one. words: its AUCs, for people, on how many
    rows and whether more may come; the one to read comes last. warnings: about its line.
    """

    window: str
    generation: int
    rows: dict[str, int] = Field(default_factory=dict)
    label_not_known: dict[str, int] = Field(default_factory=dict)
    labels_not_known: dict[str, dict[str, int]] = Field(default_factory=dict)
    rows_line: str = ""
    metrics: dict[str, dict[str, float]] = Field(default_factory=dict)
    event: dict[str, dict[str, float]] = Field(default_factory=dict)
    completed: dict[str, dict[str, dict[str, float]]] = Field(default_factory=dict)
    words: list[str] = Field(default_factory=list)
    warnings: list[ShownText] = Field(default_factory=list)


class PublishResult(Message):
    """What serves now. `kept`: the pointer stays where it was; `reason` says why.

    variant, gate: which variant the gate let serve, and why; empty where no gate is declared.
    """

    state: Literal["published", "kept"]
    window: str
    generation: int
    reason: ShownText = ""
    path: str = ""
    variant: str = ""
    gate: ShownText = ""
