"""The trial reader: a child of a data executor that reads parts of a task, and may die of them.

Run as `python -m forebay.executors.poison.trial_reader --job DIR`. Calls are lines on stdin,
answers are lines on the original stdout. It reads and encodes as a data executor does.
"""

from __future__ import annotations

import itertools
import logging
import os
import sys
from collections.abc import Iterator

from forebay.datatasks.sources.common.cautious.read_units import Poison, read_around
from forebay.datatasks.sources.common.contract.base import SourceReader
from forebay.datatasks.tasks import DataTask, Position, ReadUnit, TaskProgress
from forebay.executors.arrow_start import start_arrow
from forebay.executors.link.protocol import RoleLink
from forebay.executors.readers import Readers
from forebay.executors.role import link_of_child, started_by_supervisor
from forebay.system.message import Message
from forebay.system.output.process_log import set_up_logging
from forebay.system.processes.ends import give_way_first
from forebay.system.processes.parent import die_with_parent

MODULE = "forebay.executors.poison.trial_reader"
_LOG = logging.getLogger(__name__)


class TrialCall(Message):
    """Read rows [first, end) of a task around known poisons, or, without an end, list its units.

    units: the most to list.
    """

    task: DataTask
    first: Position
    end: Position | None = None
    poisons: tuple[Poison, ...] = ()
    chunk_rows: int = 0
    units: int = 0


class TrialReply(Message):
    """What was read, or why it cannot be read, which is not a death."""

    units: tuple[ReadUnit, ...] = ()
    rows: int = 0
    error: str = ""


class TrialAnswers:
    def __init__(self, link: RoleLink) -> None:
        request = link.request("a trial reader")
        start_arrow({spec.kind for spec in request.source_specs().values()})
        self._readers = Readers(request)

    def answer(self, call: TrialCall) -> TrialReply:
        """Answer a call; an error is an answer too, as long as the process lives."""
        try:
            with self._readers.source(call.task.source) as source:
                if call.end is None:
                    units = source.units(call.task, call.first)
                    return TrialReply(units=tuple(itertools.islice(units, call.units)))
                return TrialReply(rows=sum(self._rows(source, call, call.end)))
        except Exception as error:  # noqa: BLE001 - the real reader will meet it again
            _LOG.info("%s cannot be read", call.task.task_id, exc_info=error)
            return TrialReply(error=f"{type(error).__name__}: {error}")

    def _rows(self, source: SourceReader, call: TrialCall, end: Position) -> Iterator[int]:
        task = source.before(call.task, end)
        chunks = read_around(
            source,
            task,
            TaskProgress(position=call.first),
            self._readers.columns(task.source),
            call.chunk_rows,
            [each for each in call.poisons if call.first < each.unit.end and each.unit.first < end],
        )
        for chunk in chunks:
            self._readers.encode(task, chunk)
            yield len(chunk.parts)


def main(arguments: list[str] | None = None) -> None:
    """Answer until stdin ends, or the data executor does."""
    link = link_of_child(arguments)
    set_up_logging("trial")
    die_with_parent()
    if not started_by_supervisor():
        return
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is not an answer
    give_way_first()
    answering = TrialAnswers(link)
    for line in sys.stdin.buffer:
        reply = answering.answer(TrialCall.model_validate_json(line))
        answers.write(reply.model_dump_json().encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
