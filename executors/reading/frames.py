"""FrameReading: frames with rows, window after window, each once. Not safe for several threads."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping

from forebay.datatasks.tasks import TaskProgress
from forebay.executors.reading.opening import Opened, Windows
from forebay.executors.reading.positions import ReadPosition
from forebay.executors.trainer.inbox import Frame, source_of
from forebay.executors.trainer.remote_reader import FRAME_WAIT_SECONDS, Silence

_LOG = logging.getLogger(__name__)


class FrameReading:
    """Takes the frames that the processes of a reading serve.

    plan: of the window that is being read. over: whether all rows were handed out and used.
    dead_rows: by source, in windows that were read to their end.
    """

    def __init__(self, wanted: Windows, opened: Opened, position: ReadPosition | None) -> None:
        """Begin the first window, or continue from a position.

        Raises:
            UsageError: when the position's window is not among these.
            DataError: when that window's data has changed.
            InfrastructureError: when no driver answers.
        """
        self.over = False
        self.dead_rows: Counter[str] = Counter()
        self._pipeline, self._opened = wanted.pipeline, opened
        self._left = deque(opened.plans if position is None else position.rest_of(opened.plans))
        self._held: Frame | None = None
        self._begin({} if position is None else position.progress)

    def next(self) -> Frame | None:
        """The next frame with rows; None after the last. The caller is done with the one before.

        Raises:
            DataError: when data of the window is bad.
            InfrastructureError: when a process failed too often, or no more frames come.
        """
        self._use_held()
        reader = self._opened.reader
        while not self.over:
            self._opened.processes.check()
            frame = reader.next(FRAME_WAIT_SECONDS)
            if frame is None:
                self._after_nothing()
                continue
            self._silence.broken()
            if frame.minibatch is not None and len(frame.minibatch):
                self._held = frame
                return frame
            reader.used(frame)
        return None

    def position(self) -> ReadPosition:
        """How far frames were handed out. The last one counts as used after this call."""
        self._use_held()
        return ReadPosition(
            pipeline=self._pipeline.name,
            window=self.plan.window,
            plan=self.plan.fingerprint,
            progress=self._opened.reader.progress(),
        )

    def _begin(self, progress: Mapping[str, TaskProgress]) -> None:
        self.plan = plan = self._left.popleft()
        reader = self._opened.reader
        reader.begin(plan.window, plan.generation, progress, 0)
        self._silence = Silence(reader, plan.window, self._pipeline.job)

    def _use_held(self) -> None:
        """Count the frame last handed out as used: its sender may send another."""
        held, self._held = self._held, None
        if held is not None:
            self._opened.reader.used(held)

    def _after_nothing(self) -> None:
        """No frame came in time: keep waiting, begin the next window, or end."""
        if not self._opened.reader.finished():
            self._silence.lasted(FRAME_WAIT_SECONDS)
            return
        self._count_dead()
        if self._left:
            self._begin({})
        else:
            self.over = True

    def _count_dead(self) -> None:
        dead: Counter[str] = Counter()
        for task, at in self._opened.reader.progress().items():
            dead[source_of(task)] += at.dead_rows
        for source, rows in (+dead).items():
            text = "window %s: %d rows of source %s could not be read"
            _LOG.warning(text, self.plan.window, rows, source)
        self.dead_rows += dead
