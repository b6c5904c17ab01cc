"""WindowRows: every row of some windows, once, for one program's own loop."""

from __future__ import annotations

import json
import logging
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, ValidationError

from forebay.config.load import load_project
from forebay.config.specs.datasets import Feed
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.tasks import TaskProgress
from forebay.datatasks.window_range import parse_range
from forebay.errors import DataError, ForebayError, InfrastructureError, UsageError
from forebay.executors.reading.opening import Opened, Windows, layout_of, open_reading
from forebay.executors.trainer.inbox import Frame, source_of
from forebay.executors.trainer.remote_reader import FRAME_WAIT_SECONDS, Silence
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import DENSE, IDS, arrays_by_column, served_schema
from forebay.mixture.features.served_times import ServedTimes
from forebay.mixture.minibatch import Minibatch
from forebay.system.extras import require_extra
from forebay.system.message import Message

if TYPE_CHECKING:
    from forebay.mixture.serving.served_tensors import Dataset, Tensors

_LOG = logging.getLogger(__name__)


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


SOURCE, FEED = "source", "feed"
_FEEDS: tuple[Feed, ...] = get_args(Feed)
# A list feature: row_splits int64[N+1] and values int64[M].
Lists = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
Arrays = dict[str, str | npt.NDArray[Any] | Lists]


def arrays_of(frame: Frame) -> Arrays:
    """Views of the frame's memory; see `docs/reader.md` for the names and types."""
    minibatch, batch = _rows_of(frame)
    return {FEED: minibatch.feed, SOURCE: minibatch.sources, **arrays_by_column(batch)}


def batch_of(frame: Frame, layout: FeatureLayout, sources: Sequence[str]) -> pa.RecordBatch:
    """The rows as they were served, preceded by columns with the names of source and feed."""
    minibatch, batch = _rows_of(frame)
    feeds = np.full(len(minibatch), _FEEDS.index(minibatch.feed), np.int8)
    columns = [_named(minibatch.sources, sources), _named(feeds, _FEEDS), *batch.columns]
    packed = {DENSE: list(layout.dense), IDS: [column.name for column in layout.ids]}
    fields = [
        pa.field(SOURCE, columns[0].type),
        pa.field(FEED, columns[1].type),
        *(
            field.with_metadata({"features": json.dumps(packed[field.name])})
            if field.name in packed
            else field
            for field in batch.schema
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _named(places: npt.NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places), pa.array(names, pa.string()))


def _rows_of(frame: Frame) -> tuple[Minibatch, pa.RecordBatch]:
    if frame.minibatch is None or frame.batch is None:
        raise InfrastructureError("a frame that only moves positions has no rows")
    return frame.minibatch, cast("pa.RecordBatch", frame.batch)


class WindowRows:
    """Minibatches of every planned row of some windows: each row once, window after window.

    A context manager. Entering it plans the windows and starts a driver and data executors, as
    many as the pipeline declares for a job; leaving it ends them, and they end with this process,
    however that ends. Rows are the declared features, encoded and mixed as the trainer gets them.

    Reading is not training: FOREBAY_HOME is not written to, no window counts as trained, and no
    Kafka offset is committed.

    It is one pass: `arrow`, `numpy`, `tensors` and `as_dataset` take from the same rows, and each
    continues where another stopped. Threads take turns.

    features: the names in `dense` and `ids`, in order, and the list features. sources: names by
    the number that `source` has in arrays.
    """

    def __init__(self, wanted: Windows, position: ReadPosition | None) -> None:
        self.features: FeatureLayout = layout_of(wanted)
        self.sources: tuple[str, ...] = tuple(wanted.pipeline.use_names)
        self._wanted, self._position = wanted, position
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._close: Callable[[], object] = lambda: None
        self._reading: FrameReading | None = None
        self._is_entered = False
        self._error: ForebayError | None = None

    def __enter__(self) -> Self:
        """Plan, and start the processes.

        Raises:
            NotReadyError: when a window is not closed, or a source is late and may not be skipped.
            DataError: when stored data cannot be planned, or has changed since the position.
            UsageError: when the position is of another window, or this was entered before.
            ForebayError: when the processes do not start.
        """
        if self._is_entered:
            raise UsageError("these rows were already read: call read_windows again")
        self._is_entered, self._process = True, os.getpid()
        with ExitStack() as stack:
            opened = open_reading(self._wanted, stack)
            self._reading = FrameReading(self._wanted, opened, self._position)
            # Nothing is left behind even if `with` is never left.
            self._close = weakref.finalize(self, _close, stack.pop_all(), self._process)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes and remove what they kept; in a forked process nothing happens.

        Raises:
            ForebayError: the reason why rows ended, if TensorFlow turned it into its own error.
        """
        if os.getpid() != self._process:
            return
        reading = self._reading
        if reading is not None:
            reading.over = True  # another thread that waits for a frame ends soon
        with self._turn:
            self._reading = None
            self._close()
        if self._error is not None and kind is not None and _is_of_tensorflow(kind):
            raise self._error from error

    @property
    def window(self) -> str:
        """The key of the window that is being read; raises as `position`."""
        return self._open().plan.window

    @property
    def dead_rows(self) -> Mapping[str, int]:
        """By source, rows that could not be decoded in windows that were read to their end.

        Raises:
            UsageError: outside of `with`.
        """
        return dict(self._open().dead_rows)

    def arrow(self) -> Iterator[pa.RecordBatch]:
        """Minibatches as Arrow; `docs/reader.md` has the columns. Raises as `numpy`."""
        return (batch_of(frame, self.features, self.sources) for frame in self._frames())

    def numpy(self) -> Iterator[Arrays]:
        """Minibatches as NumPy arrays by name: read-only views, valid for as long as they are kept.

        Raises:
            UsageError: outside of `with`, or when all rows were already read.
            DataError: when data of the window is bad.
            InfrastructureError: when a process failed too often, or no more rows come.
        """
        return (arrays_of(frame) for frame in self._frames())

    def tensors(self) -> Iterator[Tensors]:
        """Minibatches as TensorFlow's tensors by name; lists as RaggedTensor. Raises as `numpy`.

        Raises:
            MissingExtraError: when TensorFlow is not installed.
        """
        require_extra("train")
        from forebay.mixture.serving.served_tensors import tensors_of

        return (tensors_of(arrays) for arrays in self.numpy())

    def as_dataset(self) -> Dataset:
        """A `tf.data.Dataset` of what `tensors` yields, for one pass, without prefetching.

        An error ends it as one of TensorFlow's; leaving `with` raises the original one.

        Raises:
            MissingExtraError: when TensorFlow is not installed.
        """
        require_extra("train")
        from forebay.mixture.serving.served_tensors import dataset_of

        times = ServedTimes.of(self._wanted.pipeline, self._wanted.project.sources)
        return dataset_of(self._remembered, served_schema(self.features, times))

    def position(self) -> str:
        """How far rows were handed out, as a text for `read_windows`: the next row comes first.

        Store it atomically with what was made from the rows so far (a checkpoint, say): a program
        that continues from both uses each row once, whatever was killed in between.

        Raises:
            UsageError: outside of `with`.
        """
        self._open()
        with self._turn:
            return self._open().position().model_dump_json()

    def _remembered(self) -> Iterator[Tensors]:
        try:
            yield from self.tensors()
        except UsageError as error:
            self._error = self._error or error
            raise

    def _frames(self) -> Iterator[Frame]:
        if self._open().over:
            raise UsageError("all rows were read: call read_windows again for another pass")
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        """The next frame; an error that ended the rows is raised again on every later call."""
        self._open()  # a lock held by another thread when this process was forked stays locked
        with self._turn:
            reading = self._open()
            if self._error is not None:
                raise self._error
            try:
                return reading.next()
            except ForebayError as error:
                self._error = error
                raise
            except BaseException:
                # A frame may have been taken but not handed out: `position` does not count it.
                self._error = InfrastructureError(
                    "the reading was interrupted while it took rows: pass the text of `position()` "
                    "to read_windows to continue"
                )
                raise

    def _open(self) -> FrameReading:
        if os.getpid() != self._process:
            raise UsageError(
                "these rows belong to the process that this one was forked from, and would be read "
                "twice: call read_windows here"
            )
        if self._reading is None:
            raise UsageError("rows are available only inside `with read_windows(...) as rows`")
        return self._reading


def read_windows(
    config: Path | str, pipeline: str, *, first: str, last: str, position: str | None = None
) -> WindowRows:
    """Every row of the windows from `first` to `last`, for a loop of your own.

        with read_windows("config", "ads", first="2026-03-01", last="2026-03-02") as rows:
            for minibatch in rows.numpy():
                learn(minibatch["dense"], minibatch["ids"], minibatch["label"])

    Args:
        config: the folder of declarations.
        pipeline: which of its pipelines.
        first: the key of the first window, such as 2026-03-01 or 2026-03-01T07.
        last: the key of the last one, which is read too.
        position: what `WindowRows.position` gave, to continue there; None to begin with `first`.

    Raises:
        ConfigError: when the pipeline is not declared or has errors, or the texts name no windows.
        UsageError: when the position is not one of this pipeline.
    """
    project = load_project(Path(config))
    spec = project.pipeline(pipeline)
    wanted = Windows(project, spec, parse_range(spec, first, last))
    begun = None if position is None else ReadPosition.of_text(position, spec.name)
    return WindowRows(wanted, begun)


def _close(stack: ExitStack, process: int) -> None:
    if os.getpid() == process:
        stack.close()


def _is_of_tensorflow(kind: type[BaseException]) -> bool:
    return kind.__module__.partition(".")[0] == "tensorflow"
