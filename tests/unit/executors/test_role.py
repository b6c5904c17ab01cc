"""How roles end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.errors import (
    ConfigError,
    DataError,
    ExportError,
    InfrastructureError,
    LineBusyError,
    NotReadyError,
    RowsLostError,
)
from forebay.executors.job.folder import JobFolder
from forebay.executors.link.local import LocalLink
from forebay.executors.role import Given, Stop, role_exit, run_in_thread
from forebay.executors.roles.table import DATA
from forebay.system.output.error_report import ErrorReport

LINGERING = """
import sys, threading, time
from pathlib import Path
from forebay.errors import DataError
from forebay.executors import role
from forebay.executors.link.local import LocalLink
from forebay.executors.role import start_role
role.EXIT_GRACE_SECONDS = 0.3
link = LocalLink(Path(sys.argv[1]), "data")
start_role(link)
with role.role_exit(link):
    threading.Thread(target=time.sleep, args=[60], name="deaf-thread").start()
    exec(sys.argv[2])
"""


CRASHING = """
import os, resource, signal, subprocess, sys
from pathlib import Path
from forebay.executors.link.local import LocalLink
from forebay.executors.role import start_role
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
start_role(LocalLink(Path(sys.argv[1]), "data"))
subprocess.run([sys.executable, "-c", "import os; os.abort()"])
os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_crash_leaves_no_memory_behind(tmp_path: Path) -> None:
    """It holds secrets, and a gigabyte or two: of a role, or of a child that tries a payload."""
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert list(tmp_path.glob("core*")) == []


@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (ConfigError("wrong key"), "ConfigError", 1),
        (NotReadyError("wrong key"), "NotReadyError", 2),
        (RowsLostError("wrong key"), "RowsLostError", 3),
        (InfrastructureError("wrong key"), "InfrastructureError", 4),
        (OSError(28, "No space left on device"), "OSError", 4),
        (ZeroDivisionError(), "ZeroDivisionError", 4),
    ],
)
def test_errors_leave_file_and_code(tmp_path: Path, error: Exception, name: str, code: int) -> None:
    with pytest.raises(SystemExit) as ended, role_exit(LocalLink(tmp_path, "data", 1)):
        raise error
    assert ended.value.code == code
    failure = JobFolder(tmp_path).process("data", 1).failure()
    assert failure is not None
    assert (failure.error, failure.exit_code) == (name, code)
    assert failure.message.removeprefix(f"{name}: ") == (str(error) or name)


@pytest.mark.parametrize(("error", "code"), [("", 0), ("raise DataError()", 3)])
def test_a_thread_that_does_not_end_holds_no_role(tmp_path: Path, error: str, code: int) -> None:
    result = subprocess.run(
        [sys.executable, "-c", LINGERING, str(tmp_path), error],
        env={**os.environ, "FOREBAY_PARENT_PID": str(os.getpid())},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert result.returncode == code
    assert "threads still run" in result.stderr
    assert "deaf-thread" in result.stderr


def test_a_good_end_leaves_nothing(tmp_path: Path) -> None:
    with role_exit(LocalLink(tmp_path, "data", 1)):
        pass
    assert JobFolder(tmp_path).process("data", 1).failure() is None


def test_an_exit_of_ones_own_passes(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended, role_exit(LocalLink(tmp_path, "data", 1)):
        raise SystemExit(9)
    assert ended.value.code == 9
    assert JobFolder(tmp_path).process("data", 1).failure() is None


def test_the_code_survives_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "failures").write_text("a file where the folder should be")
    with pytest.raises(SystemExit) as ended, role_exit(LocalLink(tmp_path, "data", 1)):
        raise DataError("row 7 is no row")
    assert ended.value.code == 3
    assert "cannot write" in caplog.text
    assert "row 7 is no row" in caplog.text


def test_the_code_of_a_thread_survives_a_full_disk_too(tmp_path: Path) -> None:
    """It would count as a crash, for which what was being read is examined."""
    (tmp_path / "failures").write_text("not a folder")

    def fails(_given: Given) -> None:
        raise DataError("column at is missing")

    arguments = ("--job", str(tmp_path), "--index", "0", "--attempt", "1")
    assert run_in_thread(DATA, fails, arguments, Stop()) == DataError.exit_code


def test_a_failure_of_the_line_or_the_export_keeps_what_it_is() -> None:
    busy = ErrorReport.of(LineBusyError("job x trains it"))
    assert isinstance(busy.exception(), LineBusyError)
    assert (busy.exit_code, busy.final) == (4, False)
    unfit = ErrorReport.of(ExportError("model y is not fit"))
    assert (unfit.exit_code, unfit.final) == (4, True), "a restart would write the same"


LIGHT = """
import sys
import forebay.executors.{module}
from forebay.executors.arrow_start import start_arrow
start_arrow()
import pyarrow as pa
array = pa.array([1, 2])
assert array.to_numpy().sum() == 3
assert "pandas" not in sys.modules
assert array.to_pandas().sum() == 3
assert "pandas" in sys.modules
start_arrow()
"""


# A source kind of others finds Arrow as it always is.
OTHERS = """
import sys
from forebay.executors import arrow_start

class Theirs:
    pass

arrow_start.kind_named = {"theirs": Theirs}.__getitem__
arrow_start.start_arrow(["theirs"])
assert "pandas" in sys.modules
"""


MODULES = ("data_executor", "driver", "trainer")


@pytest.mark.parametrize(
    "code",
    [*(LIGHT.format(module=module) for module in MODULES), OTHERS],
    ids=[*MODULES, "a source kind of others"],
)
def test_pandas_is_imported_when_asked_for_only(code: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
