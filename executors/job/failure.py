"""The file in which a process of a job says why it failed: `failures/<role>-<index>.json`.

It is what a supervisor shows as the job's error.
"""

from __future__ import annotations

from pathlib import Path

from forebay.system.error_report import ErrorReport
from forebay.system.files import write_atomically


def failure_path(job_dir: Path, role: str, index: int) -> Path:
    """Where a process writes its failure."""
    return job_dir / "failures" / f"{role}-{index}.json"


def read_failure(job_dir: Path, role: str, index: int) -> ErrorReport | None:
    """The failure that a process wrote before it ended, if any."""
    return ErrorReport.of_file(failure_path(job_dir, role, index))


def write_failure(job_dir: Path, role: str, index: int, failure: ErrorReport) -> None:
    """Say why this process fails."""
    write_atomically(failure_path(job_dir, role, index), failure.model_dump_json())
