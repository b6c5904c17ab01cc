"""What a job has to do, as stored in its folder, and what state it is in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from forebay.config.base import NAME_PATTERN
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.errors import UsageError
from forebay.executors.job.job_id import JOB_ID_PATTERN
from forebay.home.paths import DEFAULT_LINE
from forebay.system.error_report import ErrorReport
from forebay.system.files import write_private
from forebay.system.message import Message

REQUEST_NAME = "job.json"
Role = Literal["driver", "data", "trainer"]
State = Literal["submitted", "running", "succeeded", "failed", "cancelled", "lost"]
ACTIVE_STATES: frozenset[State] = frozenset({"submitted", "running"})
ENDED_STATES: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})


class WindowRequest(Message):
    """One window to train: rows of [start, end), in UTC, under this generation."""

    key: str
    generation: int
    start: datetime
    end: datetime
    warm_start: bool = False


class JobRequest(Message):
    """Everything that a job's processes need to know; nothing is read from YAML later.

    home, project_root: absolute paths. pipeline, sources: the specs as JSON, with their names.
    windows: in the order of training. publishes: the model of the last window serves as soon as
    it may; where not, it is exported all the same and somebody else publishes it.
    """

    job_id: str = Field(pattern=JOB_ID_PATTERN)
    pipeline_name: str
    line: str = Field(default=DEFAULT_LINE, pattern=NAME_PATTERN)
    home: str
    project_root: str
    pipeline: dict[str, Any]
    sources: dict[str, dict[str, Any]]
    windows: list[WindowRequest]
    reprocess: bool = False
    publishes: bool = True

    @classmethod
    def of(
        cls,
        job_id: str,
        home: Path,
        project_root: Path,
        pipeline: PipelineSpec,
        sources: Mapping[str, SourceSpec],
        windows: list[WindowRequest],
        *,
        line: str = DEFAULT_LINE,
        reprocess: bool = False,
        publishes: bool = True,
    ) -> Self:
        """Put specs into a request. Only the pipeline's own sources are kept."""
        specs = {name: sources[name] for name in pipeline.source_names}
        return cls(
            job_id=job_id,
            pipeline_name=pipeline.name,
            line=line,
            home=str(home.absolute()),
            project_root=str(project_root.absolute()),
            pipeline=_with_name(pipeline),
            sources={name: _with_name(spec) for name, spec in specs.items()},
            windows=windows,
            reprocess=reprocess,
            publishes=publishes,
        )

    def pipeline_spec(self) -> PipelineSpec:
        """The pipeline as a model."""
        return PipelineSpec.model_validate({"name": self.pipeline_name, **self.pipeline})

    def source_specs(self) -> dict[str, SourceSpec]:
        """The sources as models, by name."""
        return {
            name: SourceSpec.model_validate({"name": name, **spec})
            for name, spec in self.sources.items()
        }

    @classmethod
    def read(cls, job_dir: Path) -> Self:
        """The request of the job in this folder.

        Raises:
            UsageError: when no job was submitted there.
        """
        request = cls.of_file(job_dir / REQUEST_NAME)
        if request is None:
            raise UsageError(f"no job {job_dir.name!r} below {job_dir.parent}")
        return request

    def write(self, job_dir: Path) -> None:
        """Store the request in the job's folder. It holds values of the environment: secrets."""
        write_private(job_dir / REQUEST_NAME, self.model_dump_json(indent=1))

    @property
    def fingerprint(self) -> str:
        """Equal for requests that differ in nothing but their windows and who serves them."""
        requested = self.model_dump(mode="json", exclude={"windows", "home"})
        return hashlib.sha256(json.dumps(requested, sort_keys=True).encode()).hexdigest()


class JobStatus(Message):
    """The state of a job, written by its supervisor. `lost` is never written: readers find it.

    state: `lost` means that the supervisor died; submitting the same job again continues it.
    epoch: the submission that the running (or last) supervisor answers to; grows.
    restarts: by role (supervisor, driver, data, trainer), over all supervisors of one run.
    ends: counted unexpected ends by process (`driver-0`), what `restarts_max` bounds.
    pids: of living processes by name, `supervisor` and `<role>-<index>`.
    cancelled_by: epoch of the cancel request that was accepted.
    hung: which processes were ended and why, as they showed no progress; the newest ones.
    phases: seconds by what the supervisor did: start, run, stop.
    """

    job_id: str
    state: State
    epoch: int
    restarts: dict[str, int] = Field(
        default_factory=lambda: dict.fromkeys(("supervisor", "driver", "data", "trainer"), 0)
    )
    ends: dict[str, int] = Field(default_factory=dict)
    hung: list[str] = Field(default_factory=list)
    error: ErrorReport | None = None
    pids: dict[str, int] = Field(default_factory=dict)
    cancelled_by: int | None = None
    submitted_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    phases: dict[str, float] = Field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the job came to its end (a lost one did not)."""
        return self.state in ENDED_STATES

    @property
    def is_active(self) -> bool:
        """Whether the job is starting or running."""
        return self.state in ACTIVE_STATES


def _with_name(spec: PipelineSpec | SourceSpec) -> dict[str, Any]:
    return {"name": spec.name, **spec.model_dump(mode="json")}
