"""Start TensorFlow once in a process: quiet, with a set number of threads."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from forebay.system.extras import require_extra

LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
STARTS = "FOREBAY_TENSORFLOW_STARTS"  # names a file: every start adds one byte to it
STDERR = 2
_LOG = logging.getLogger(__name__)


def start_tensorflow(threads: int) -> None:
    """Import TensorFlow and limit its threads. A process has one setting: that of the first call.

    With TF_CPP_MIN_LOG_LEVEL=0 in the environment, what TensorFlow writes while it starts is shown.

    Raises:
        MissingExtraError: when TensorFlow is not installed.
    """
    require_extra("train")
    if "tensorflow" not in sys.modules and (counted := os.environ.get(STARTS)):
        # A start takes seconds: the test suite reports how many there were in all its processes.
        with Path(counted).open("ab") as file:
            file.write(b".")
    if "tensorflow" not in sys.modules and os.environ.get(LOG_LEVEL) != "0":
        os.environ.setdefault(LOG_LEVEL, "2")
        with _quiet_start():
            _start(threads)
    else:
        _start(threads)


def _start(threads: int) -> None:
    with _without_keras():
        import tensorflow as tf
    tf.get_logger().setLevel(logging.ERROR)
    logging.getLogger("absl").setLevel(logging.WARNING)  # otherwise every export logs its internals
    threading = tf.config.threading
    if threading.get_intra_op_parallelism_threads() != threads:
        try:
            threading.set_intra_op_parallelism_threads(threads)
            threading.set_inter_op_parallelism_threads(threads)
        except RuntimeError:
            _LOG.warning("TensorFlow is already running; its number of threads cannot change")
    tf.config.list_logical_devices()  # starts the runtime, which looks for devices


@contextlib.contextmanager
def _without_keras() -> Iterator[None]:
    """TensorFlow imports Keras while it starts, and Keras imports matplotlib and pandas: seconds.

    Nothing here needs them; `tf.keras` still loads Keras for code that uses it.
    """
    if "keras" in sys.modules:
        yield
        return
    # Importing a module that is None fails, and TensorFlow handles that.
    sys.modules["keras"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["keras"]


@contextlib.contextmanager
def _quiet_start() -> Iterator[None]:
    """Keep lines that TensorFlow's C++ code writes before any log level applies off stderr.

    They name missing GPU libraries on every machine without a GPU. If the start fails, they are
    shown after all.
    """
    sys.stderr.flush()
    kept = os.dup(STDERR)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), STDERR)
        try:
            yield
        except BaseException:
            os.dup2(kept, STDERR)
            written.seek(0)
            os.write(STDERR, written.read())
            raise
        finally:
            os.dup2(kept, STDERR)
            os.close(kept)
