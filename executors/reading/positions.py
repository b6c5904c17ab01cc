"""How far a reading has come, as a text that its owner keeps beside a checkpoint of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field, ValidationError

from forebay.datatasks.plans import WindowPlan
from forebay.datatasks.tasks import TaskProgress
from forebay.errors import DataError, UsageError
from forebay.system.message import Message


class ReadPosition(Message):
    """All windows of the pipeline before `window` were read, and of this one what is listed.

    plan: the fingerprint of what was planned for the window. progress: by task, where its next
    row is; a task that is not listed was not begun.
    """

    pipeline: str
    window: str
    plan: str
    progress: Mapping[str, TaskProgress] = Field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str, pipeline: str) -> Self:
        """The position that a text holds.

        Raises:
            UsageError: when it holds none, or one of another pipeline.
        """
        try:
            found = cls.model_validate_json(text)
        except ValidationError as error:
            raise UsageError(
                "position: this is no text that `position()` of a reading gave: begin without it "
                "to read from the first row"
            ) from error
        if found.pipeline != pipeline:
            raise UsageError(f"position: it is of pipeline {found.pipeline!r}, not {pipeline!r}")
        return found

    def rest_of(self, plans: Sequence[WindowPlan]) -> list[WindowPlan]:
        """The windows that are not read to their end, this one first.

        Raises:
            UsageError: when its window is none of them.
            DataError: when the data of its window has changed since.
        """
        keys = [plan.window for plan in plans]
        if self.window not in keys:
            raise UsageError(
                f"position: it is in window {self.window}, and windows {keys[0]} to {keys[-1]} are "
                "to be read: name the same range again"
            )
        rest = list(plans[keys.index(self.window) :])
        if rest[0].fingerprint != self.plan:
            raise DataError(
                f"position: what is stored for window {self.window} has changed since it was "
                "taken, or its sources are declared otherwise: begin this window without it"
            )
        return rest
