"""`forebay stage …` in the job's interpreter: start it, read its output, bound its time, end it.

Airflow's own environment needs nothing that a stage imports. A stage prints one line of JSON on
standard output, its result, and lines for people on standard error, which go to the log of the
Airflow task as they arrive.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO, TypeVar

from pydantic import ValidationError

from forebay.errors import ConfigError, InfrastructureError, error_of
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.system.environment import PLANNING, inherited
from forebay.system.files.durable import PRIVATE_FOLDER
from forebay.system.message import Message
from forebay.system.output.process_log import LogTail
from forebay.system.processes.ends import how_it_ended
from forebay.system.processes.fork_server import ForkedProcess

LogLine = Callable[[str], None]
StageResult = TypeVar("StageResult", bound=Message)
OUTPUT_BYTES_MAX = 4 * 2**20
LOG_LINE_MAX = 4_000
_ERROR_LINES_KEPT = 40
_ERROR_MARK = "error: "
_GRACE_SECONDS = 2.0
_START_SECONDS, _POLL_SECONDS = 60.0, 0.02
# Of a library that starts them when it is imported: what forks has to be alone.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
_LOG_NAME, _KEY_LETTERS = "log", 16


@dataclass(frozen=True)
class StageCommand:
    """One call of `forebay stage`, wherever it is run.

    variables: what it inherits besides what every stage needs: names and prefixes (`ACME_*`).
    """

    python: str
    stage: str
    arguments: tuple[str, ...]
    variables: Sequence[str] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """What `forebay` is called with."""
        return ("stage", self.stage, *self.arguments)

    @property
    def line(self) -> list[str]:
        """The command in a process of its own: nothing is imported from the working folder."""
        return [self.python, "-P", "-m", "forebay.cli", *self.words]

    def __str__(self) -> str:
        """Without options: ids of runs and lists of other windows would fill the log."""
        words = takewhile(lambda word: not word.startswith("--"), self.arguments)
        return " ".join(["forebay", "stage", self.stage, *words])


@dataclass(frozen=True)
class StageOutput:
    """How a stage ended. code: negative for a signal. error: its message about the failure."""

    code: int
    printed: str
    error: str

    def result(self, command: StageCommand, model: type[StageResult]) -> StageResult:
        """The one line that was printed, as its model.

        Raises:
            ConfigError, NotReadyError, DataError, InfrastructureError: by the exit code.
        """
        if self.code != 0:
            raise error_of(self.code, self.error or f"`{command}` {how_it_ended(self.code)}")
        lines = self.printed.splitlines()
        if len(lines) != 1:
            raise InfrastructureError(
                f"`{command}` printed {len(lines)} lines instead of one result"
            )
        try:
            return model.model_validate_json(lines[0])
        except ValidationError as error:
            raise ConfigError(
                f"`{command}` printed no {model.__name__}: does {command.python} have the same "
                f"version of forebay as Airflow? {error}"
            ) from error


class StageProcess:
    """One running stage. It ends with its caller: at the deadline, on an exception, or by `end`.

    It is forked from a process that has imported all stages: see `forebay.stages`.
    """

    def __init__(self, command: StageCommand, home: Home, log: LogLine) -> None:
        """Start it.

        Raises:
            ConfigError: when the interpreter cannot be started.
        """
        self._command = command
        self._log = log
        self._said: deque[str] = deque(maxlen=_ERROR_LINES_KEPT)
        self._printed = bytearray()
        output, printed = os.pipe()
        errors, said = os.pipe()
        self._streams = (os.fdopen(errors, "rb"), os.fdopen(output, "rb"))
        try:
            self._process = _started(command, home, printed, said)
        except BaseException:
            for stream in self._streams:
                stream.close()
            raise
        finally:
            os.close(printed)
            os.close(said)

    def wait(self, deadline_seconds: float) -> StageOutput:
        """Wait for the end.

        Raises:
            InfrastructureError: when it has not ended by the deadline; then it is ended.
        """
        readers = [
            (threading.Thread(target=read, args=[stream], daemon=True), stream)
            for read, stream in zip((self._listen, self._collect), self._streams, strict=True)
        ]
        try:
            for reader, _ in readers:
                reader.start()
            code = self._process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"`{self._command}` had not ended after {deadline_seconds:g} s and was stopped"
            ) from None
        finally:
            self.end()
            for reader, stream in readers:
                reader.join(_GRACE_SECONDS)
                if not reader.is_alive():
                    stream.close()
            self._process.close()
        return StageOutput(code, self._printed.decode(errors="replace"), error_text(self._said))

    def end(self) -> None:
        """End the process and its children, unless it has already ended. Signal-safe."""
        if self._process.poll() is not None:
            return
        self._process.terminate_group()
        try:
            self._process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.terminate_group(kill=True)

    def _listen(self, stream: IO[bytes]) -> None:
        for raw in iter(lambda: stream.readline(LOG_LINE_MAX), b""):
            line = raw.decode(errors="replace").rstrip()
            self._said.append(line)
            if line:
                self._log(line)

    def _collect(self, stream: IO[bytes]) -> None:
        for chunk in iter(lambda: stream.read(65_536), b""):
            if len(self._printed) + len(chunk) <= OUTPUT_BYTES_MAX:
                self._printed += chunk


def _started(command: StageCommand, home: Home, stdout: int, stderr: int) -> ForkedProcess:
    """Raises ConfigError or InfrastructureError when what forks cannot be started."""
    given = environment(command, home)
    key = hashlib.sha256(repr((command.python, sorted(given.items()))).encode()).hexdigest()
    folder, deadline = home.stages / key[:_KEY_LETTERS], time.monotonic() + _START_SECONDS
    server: subprocess.Popen[bytes] | None = None
    while True:
        try:
            return ForkedProcess.start(folder, command.words, stdout, stderr)
        except OSError as error:
            if server is None or server.poll() == 0:  # it met one that was about to end
                server = _server(command.python, folder, given)
            if time.monotonic() > deadline or server.poll() not in {None, 0}:
                said = LogTail(folder / _LOG_NAME).last(_ERROR_LINES_KEPT)
                raise InfrastructureError(
                    f"stages of {command.python} do not start ({error}): " + "\n".join(said)
                ) from error
            time.sleep(_POLL_SECONDS)


def _server(python: str, folder: Path, given: dict[str, str]) -> subprocess.Popen[bytes]:
    """Of two that are started at once, one ends."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    try:
        with (folder / _LOG_NAME).open("ab") as log:
            server = subprocess.Popen(
                [python, "-P", "-m", "forebay.stages", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_ONE_THREAD, **given},
                start_new_session=True,
            )
    except OSError as error:
        raise interpreter_missing(python, error) from error
    # It outlives this call, and must not become a zombie below a process that runs for months.
    threading.Thread(target=server.wait, name="reap-stages", daemon=True).start()
    return server


def environment(command: StageCommand, home: Home) -> dict[str, str]:
    """What a stage inherits, and FOREBAY_HOME. Nothing from Airflow, such as database or keys."""
    kept = inherited(os.environ, (*PLANNING, *command.variables))
    return {**kept, ENVIRONMENT_NAME: str(home.root)}


def interpreter_missing(python: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"the interpreter {python} cannot be started ({error.strerror}): correct "
        "job.roles.data.runtime.python of the pipeline, or Airflow's option [forebay] python"
    )


def error_text(said: Sequence[str]) -> str:
    """The text from the last `error: …` line on; all of the last lines if there is none."""
    _, _, text = "\n".join(["", *said]).rpartition(f"\n{_ERROR_MARK}")
    return text.strip()
