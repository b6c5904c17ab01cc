"""The folder of one job on the host that runs it: request, logs, sockets, tokens and locks.

The state of the job is not here but in the database. `supervisor.lock` is held from the moment a
submitter prepares the folder until the supervisor is gone: the submitter passes it to the process
that it starts, so it is free only when nothing runs the job.
"""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

from forebay.errors import UsageError
from forebay.executors.job.measures import MeasuresFile, Progress
from forebay.executors.job.request import JobRequest
from forebay.executors.job.suspicions import Suspicions
from forebay.executors.roles.table import SUPERVISOR
from forebay.home.paths import Home
from forebay.home.privacy import make_home
from forebay.system.files.durable import write_atomically, write_private, writing
from forebay.system.files.locks import is_held
from forebay.system.message import Message
from forebay.system.output.error_report import ErrorReport

_REQUEST_NAME = "job.json"
_PROGRESS_NAME = "progress.json"
_PRIVATE = 0o700
_OTHERS = 0o077


class JobFolder:
    def __init__(self, path: Path) -> None:
        """`path` is `jobs/<job id>` below FOREBAY_HOME."""
        self.path = path
        self.logs = path / "logs"
        self.supervisor_lock = path / "supervisor.lock"
        self.supervisor_log = self.logs / "supervisor.log"
        self.sockets = path / "sockets"
        self.journal = path / "journal" / "driver.jsonl"
        self.driver_endpoint = path / "endpoints" / "driver.json"
        self._poke = path / "poke"
        self._temporary = path / "temporary"

    @property
    def home(self) -> Home:
        return Home(self.path.parent.parent)

    @property
    def job_id(self) -> str:
        return self.path.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """With these a process of the job finds this folder."""
        return ("--job", str(self.path))

    @property
    def name(self) -> str:
        """A name that no other job of this host has, whatever its home."""
        return f"{self.job_id}:{zlib.crc32(str(self.path.absolute()).encode()):08x}"

    def create(self) -> None:
        make_home(self.home)
        self.path.parent.mkdir(exist_ok=True)
        self.path.mkdir(mode=_PRIVATE, exist_ok=True)
        if self.path.stat().st_mode & _OTHERS:
            self.path.chmod(_PRIVATE)
        for name in ("logs", "failures", "endpoints", "journal"):
            (self.path / name).mkdir(exist_ok=True)

    def is_held(self) -> bool:
        """Whether a supervisor runs the job here, or somebody is about to start one."""
        return is_held(self.supervisor_lock)

    def is_supervised(self) -> bool:
        """Whether a supervisor runs the job here; not true for a submitter about to start one."""
        return self.is_held() and self.supervisor_lock.read_text() == SUPERVISOR

    def prepare(self, request: JobRequest, *, continues: bool) -> None:
        """Make everything ready for a new supervisor. Only for the holder of its lock.

        continues: whether it continues what an earlier one was doing when it was lost.
        """
        if not continues:
            (self.path / _PROGRESS_NAME).unlink(missing_ok=True)
        for endpoint in (self.path / "endpoints").iterdir():
            endpoint.unlink()  # of processes that are gone, or that the supervisor ends
        self.close()
        # Its trainers are gone, and a database from a backup counts submissions from lower numbers.
        self.journal.unlink(missing_ok=True)
        self.write(request)

    def write(self, request: JobRequest) -> None:
        """Store what is asked for, with any secret that is written in the YAML itself."""
        write_private(self.path / _REQUEST_NAME, request.model_dump_json(indent=1))

    def request(self, process: str = "this process") -> JobRequest:
        """What was submitted. process: the reader's name in errors.

        Raises:
            UsageError: when nothing was.
        """
        request = JobRequest.of_file(self.path / _REQUEST_NAME)
        if request is None:
            raise UsageError(f"no job {self.job_id!r} below {self.path.parent}")
        return request.read_by(process)

    def progress(self) -> Progress | None:
        """The trainer's newest report, or None before the first."""
        return Progress.of_file(self.path / _PROGRESS_NAME)

    def report(self, progress: Progress) -> None:
        write_atomically(self.path / _PROGRESS_NAME, progress.model_dump_json())

    @property
    def measures(self) -> MeasuresFile:
        return MeasuresFile(self.path / "measures.jsonl")

    @property
    def suspicions(self) -> Suspicions:
        return Suspicions(self.path)

    def process(self, role: str, index: int) -> ProcessFiles:
        return ProcessFiles(self.path, role, f"{role}-{index}")

    def close(self) -> None:
        """Remove sockets, tokens and temporary files of processes that are gone, or about to be.

        What a dying process writes meanwhile goes with the job's folder.

        Raises:
            InfrastructureError: when sockets cannot be removed.
        """
        shutil.rmtree(self._temporary, ignore_errors=True)
        with writing(self.sockets):
            for left in self.sockets.glob("*"):
                left.unlink(missing_ok=True)

    def poke(self) -> None:
        """Make the supervisor look into the database now; it does so every second in any case."""
        if self.path.is_dir():
            self._poke.touch()

    def take_poke(self) -> bool:
        try:
            self._poke.unlink()
        except FileNotFoundError:
            return False
        return True


class _Phases(Message):
    seconds: dict[str, float]


class ProcessFiles:
    """What one process of a job leaves for its supervisor."""

    def __init__(self, job: Path, role: str, name: str) -> None:
        """name: `<role>-<index>`."""
        self.log = job / "logs" / f"{name}.log"
        # Where it shows that it makes progress (`forebay.system.liveness`).
        self.pulse = job / "pulse" / name
        self._failure = job / "failures" / f"{name}.json"
        self._registered = job / "endpoints" / name
        self._phases = job / "pulse" / f"{name}.json"
        self._endpoint = job / "endpoints" / f"{role}.json"
        self._temporary = job / "temporary" / name

    def failure(self) -> ErrorReport | None:
        """Why the newest process says that it failed."""
        return ErrorReport.of_file(self._failure)

    def failed(self, failure: ErrorReport) -> None:
        write_atomically(self._failure, failure.model_dump_json())

    def phases(self) -> dict[str, float]:
        """Seconds by what the newest process says that it did; empty before it says so.

        Raises:
            DataError: when the file is damaged.
        """
        found = _Phases.of_file(self._phases)
        return {} if found is None else found.seconds

    def report_phases(self, seconds: dict[str, float]) -> None:
        """Replace that. It is no loss if the host loses it, so nothing waits for the disk."""
        new = self._phases.with_suffix(".new")
        new.write_text(_Phases(seconds=seconds).model_dump_json())
        new.replace(self._phases)

    def is_registered(self) -> bool:
        """Whether the driver knows the newest process."""
        return self._registered.is_file()

    def registered(self, address: str) -> None:
        write_atomically(self._registered, address)

    def forget(self) -> None:
        """Remove what an earlier process left.

        It must neither be taken for the next one's nor direct others to where nobody listens.
        """
        for left in (self._failure, self._registered, self._endpoint, self._phases):
            left.unlink(missing_ok=True)

    def new_temporary(self) -> Path:
        """An empty folder for a process that starts now, instead of the one before it.

        Libraries leave temporary files behind, such as TensorFlow the code that it generates. In a
        folder that every user may write to, they would outlive the job, and others could plant
        theirs.
        """
        shutil.rmtree(self._temporary, ignore_errors=True)
        with writing(self._temporary):
            self._temporary.mkdir(parents=True, exist_ok=True)
        return self._temporary
