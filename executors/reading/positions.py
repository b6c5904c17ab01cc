"""The position of a reading, as a text that its owner stores beside their own checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field, ValidationError

from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.tasks import TaskProgress
from forebay.errors import DataError, UsageError
from forebay.system.message import Message


class ReadPosition(Message):
    """All windows of the pipeline before `window` were read, and this one up to `progress`.

    plan: the fingerprint of the window's plan. progress: by task, the position of its next row; a
    task that is not listed was not begun.
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
                "position: this text does not come from `position()` of a reading: leave it out "
                "to read from the first row"
            ) from error
        if found.pipeline != pipeline:
            raise UsageError(f"position: it is of pipeline {found.pipeline!r}, not {pipeline!r}")
        return found

    def rest_of(self, plans: Sequence[WindowPlan]) -> list[WindowPlan]:
        """The windows that are not completely read, this one first.

        Raises:
            UsageError: when its window is not one of them.
            DataError: when the data of its window has changed since.
        """
        keys = [plan.window for plan in plans]
        if self.window not in keys:
            raise UsageError(
                f"position: it is in window {self.window}, but the windows to read are {keys[0]} "
                f"to {keys[-1]}: use the same range again"
            )
        rest = list(plans[keys.index(self.window) :])
        if rest[0].fingerprint != self.plan:
            raise DataError(
                f"position: the data of window {self.window} has changed since it was taken, or "
                "its sources are declared differently: read this window again without it"
            )
        return rest
