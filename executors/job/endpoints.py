"""Which data executors of a job have registered at its driver: one file for each.

Light on purpose: Airflow's operators wait for it and import no gRPC.
"""

from __future__ import annotations

from pathlib import Path

from forebay.system.files.durable import write_atomically

_FOLDER = "endpoints"


def mark_registered(job_dir: Path, index: int, address: str) -> None:
    """Written by a data executor once its driver knows it."""
    write_atomically(_path(job_dir, index), address)


def forget_registered(job_dir: Path, index: int) -> None:
    _path(job_dir, index).unlink(missing_ok=True)


def executors_registered(job_dir: Path, count: int) -> bool:
    """Whether the job's current data executors 0 to `count` - 1 have all registered."""
    return all(_path(job_dir, index).is_file() for index in range(count))


def _path(job_dir: Path, index: int) -> Path:
    return job_dir / _FOLDER / f"data-{index}"
