"""The folder of one job on the host that runs it: request, logs, sockets, tokens and locks.

The state of the job is not here but in the database. `supervisor.lock` is held from the moment a
submitter prepares the folder until the supervisor is gone: the submitter passes it to the process
that it starts, so it is free only when nothing runs the job.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from forebay.executors.job.request import JobRequest
from forebay.executors.roles.table import DATA, SUPERVISOR
from forebay.home.paths import Home
from forebay.home.privacy import make_home
from forebay.system.files.durable import write_atomically, writing
from forebay.system.files.locks import is_held
from forebay.system.output.error_report import ErrorReport

PROGRESS_NAME = "progress.json"
JOURNAL_FILE = Path("journal") / "driver.jsonl"
_PRIVATE = 0o700
_OTHERS = 0o077


class JobFolder:
    def __init__(self, path: Path) -> None:
        """`path` is `jobs/<job id>` below FOREBAY_HOME."""
        self.path = path
        self.supervisor_lock = path / "supervisor.lock"
        self.supervisor_log = path / "logs" / "supervisor.log"
        self._poke = path / "poke"
        self._sockets = path / "sockets"
        self._temporary = path / "temporary"

    @property
    def home(self) -> Home:
        return Home(self.path.parent.parent)

    @property
    def job_id(self) -> str:
        return self.path.name

    def create(self) -> None:
        make_home(self.home)
        self.path.parent.mkdir(exist_ok=True)
        self.path.mkdir(mode=_PRIVATE, exist_ok=True)
        if self.path.stat().st_mode & _OTHERS:
            self.path.chmod(_PRIVATE)
        for name in ("logs", "failures", "endpoints", "journal"):
            (self.path / name).mkdir(exist_ok=True)

    def log_path(self, role: str, index: int) -> Path:
        return self.path / "logs" / f"{role}-{index}.log"

    def is_supervised(self) -> bool:
        """Whether a supervisor runs the job here; not true for a submitter about to start one."""
        return is_held(self.supervisor_lock) and self.supervisor_lock.read_text() == SUPERVISOR

    def prepare(self, request: JobRequest, *, continues: bool) -> None:
        """Make everything ready for a new supervisor. Only for the holder of its lock.

        continues: whether it continues what an earlier one was doing when it was lost.
        """
        if not continues:
            (self.path / PROGRESS_NAME).unlink(missing_ok=True)
        for endpoint in (self.path / "endpoints").iterdir():
            endpoint.unlink()  # of processes that are gone, or that the supervisor ends
        self.remove_sockets()
        self.remove_temporary()
        # Its trainers are gone, and a database from a backup counts submissions from lower numbers.
        (self.path / JOURNAL_FILE).unlink(missing_ok=True)
        request.write(self.path)

    def remove_sockets(self) -> None:
        """Remove the sockets and tokens of the job's processes, which are gone or about to be."""
        with writing(self._sockets):
            for left in self._sockets.glob("*"):
                left.unlink(missing_ok=True)

    def new_temporary(self, role: str, index: int) -> Path:
        """An empty folder for a process that starts now, instead of the one before it.

        Libraries leave temporary files behind, such as TensorFlow the code that it generates. In a
        folder that every user may write to, they would outlive the job, and others could plant
        theirs.
        """
        folder = self._temporary / f"{role}-{index}"
        shutil.rmtree(folder, ignore_errors=True)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def remove_temporary(self) -> None:
        """Remove what can be; what a dying process writes meanwhile goes with the job's folder."""
        shutil.rmtree(self._temporary, ignore_errors=True)

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


def pulse_path(job_dir: Path, role: str, index: int) -> Path:
    """Where a process shows that it makes progress (`forebay.system.liveness`)."""
    return job_dir / "pulse" / f"{role}-{index}"


def failure_path(job_dir: Path, role: str, index: int) -> Path:
    return job_dir / "failures" / f"{role}-{index}.json"


def read_failure(job_dir: Path, role: str, index: int) -> ErrorReport | None:
    return ErrorReport.of_file(failure_path(job_dir, role, index))


def write_failure(job_dir: Path, role: str, index: int, failure: ErrorReport) -> None:
    write_atomically(failure_path(job_dir, role, index), failure.model_dump_json())


def registered_path(job_dir: Path, index: int) -> Path:
    """What a data executor writes once the driver knows it; its successor's start removes it."""
    return job_dir / "endpoints" / f"{DATA.name}-{index}"
