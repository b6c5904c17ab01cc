"""Ends of data executors that are examined: they count only if no poison is found."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from pathlib import Path

from forebay.executors.poison.suspicions import Suspicions
from forebay.executors.supervisor.commands import RoleCommand

_LOG = logging.getLogger(__name__)


class ExaminedCrashes:
    """Distinguishes ends that a payload may have caused from all others."""

    def __init__(self, job_dir: Path) -> None:
        """Ends under an earlier supervisor are forgotten; the suspicions from them are kept."""
        self._suspicions = Suspicions(job_dir)
        self._ends: dict[str, list[str]] = defaultdict(list)

    def is_examined(self, command: RoleCommand, exit_code: int, *, hung: bool) -> bool:
        """Whether an end does not count because a task will be examined for it.

        If no poison explains it afterwards, the next end counts.

        Args:
            command: of the process that ended.
            exit_code: a negative signal number if a signal ended it.
            hung: whether this supervisor sent that signal because the process hung.
        """
        if command.role != "data":
            return False
        end = uuid.uuid4().hex
        if exit_code >= 0:
            self._suspicions.executor_starts(command.index)
            return False
        if hung:  # it counts, since a storage that does not answer is not a payload's fault
            self._suspicions.executor_ended(command.index, -exit_code, end)
            return False
        if not self._suspicions.executor_ended(command.index, -exit_code, end):
            return False
        _LOG.info("what %s was reading will be examined", command.name)
        ends = self._ends[command.name]
        in_vain = next(filter(self._suspicions.is_in_vain, ends), None)
        if in_vain is not None:
            ends.remove(in_vain)  # this one counts in its place
        ends.append(end)
        return in_vain is None

    def starts(self, command: RoleCommand) -> None:
        """A process is about to start."""
        if command.role == "data":
            self._suspicions.executor_starts(command.index)
