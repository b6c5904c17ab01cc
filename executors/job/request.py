"""What a job has to do, as stored in its folder, and what state it is in."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr

from forebay.config.declared import Declared, Reference, filled_in
from forebay.config.specs.feeds import Phase
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR
from forebay.config.yaml.environment import hide_options
from forebay.executors.roles.table import ROLES, SUPERVISOR
from forebay.home.paths import DEFAULT_LINE, ENVIRONMENT_NAME
from forebay.system.message import Message
from forebay.system.names import JOB_ID_PATTERN, NAME_PATTERN
from forebay.system.output.error_report import ErrorReport

State = Literal["submitted", "running", "succeeded", "failed", "cancelled", "lost"]
ACTIVE_STATES: frozenset[State] = frozenset({"submitted", "running"})
_ASIDE = {"windows", "home", "references", "commits", "alone"}
ENDED_STATES: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})


class WindowRequest(Message):
    """One window to train: rows of [start, end), in UTC, under this generation."""

    key: str
    generation: int
    start: datetime
    end: datetime
    warm_start: bool = False

    def phase_at(self, hour: int, unread: int) -> Phase:
        """The phase of rows of one of its hours. unread: see `config.feeds.unread_hours`."""
        if not self.warm_start:
            return "window"
        hours = (self.end - self.start) // HOUR
        return "warm_start_end" if hour >= hours - unread else "warm_start"


class JobRequest(Message):
    """Everything that a job's processes need to know; nothing is read from YAML later.

    home, project_root: absolute paths. pipeline, sources: the declarations as they are written:
    values of the environment, which may be secrets, are not in them; each process takes those that
    it needs from its own environment. references: the texts that they belong to. windows: in
    training order. publishes: the model of the last window serves as soon as it may; otherwise it
    is only exported, and published by someone else. commits: whether sealed positions are committed
    to storage (Kafka); a program that only reads does not commit. alone: all state is in `home`,
    see `Home`.
    """

    job_id: str = Field(pattern=JOB_ID_PATTERN)
    pipeline_name: str
    line: str = Field(default=DEFAULT_LINE, pattern=NAME_PATTERN)
    home: str
    project_root: str
    pipeline: dict[str, Any]
    sources: dict[str, dict[str, Any]]
    references: tuple[Reference, ...] = ()
    windows: list[WindowRequest]
    reprocess: bool = False
    publishes: bool = True
    commits: bool = True
    alone: bool = False
    _process: str = PrivateAttr("this process")

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
        declared: Declared | None = None,
        commits: bool = True,
        alone: bool = False,
    ) -> Self:
        """Make a request from declarations. Only the pipeline's own sources are kept.

        declared: the declarations as written; None if they were not read from files, so that
            nothing in them comes from the environment.
        """
        if declared is None:
            specs = {name: _with_name(sources[name]) for name in pipeline.source_names}
            declared = Declared(_with_name(pipeline), specs, ())
        # The job's processes have a different value: always an absolute path.
        declared = declared.settled({ENVIRONMENT_NAME}, os.environ)
        return cls(
            job_id=job_id,
            pipeline_name=pipeline.name,
            line=line,
            home=str(home.absolute()),
            project_root=str(project_root.absolute()),
            pipeline=declared.pipeline,
            sources=declared.sources,
            references=declared.references,
            windows=windows,
            reprocess=reprocess,
            publishes=publishes,
            commits=commits,
            alone=alone,
        )

    def pipeline_spec(self) -> PipelineSpec:
        """The pipeline as a model.

        Raises:
            ConfigError: when a variable that it refers to is not set for this process.
        """
        found = self._filled(self.pipeline, self._references())
        return PipelineSpec.model_validate({"name": self.pipeline_name, **found})

    def source_specs(self) -> dict[str, SourceSpec]:
        """The sources as models, by name; their options are as they are written.

        Raises:
            ConfigError: when a variable that they refer to elsewhere is not set for this process.
        """
        return {
            name: self._source_spec(name, (r for r in self._references(name) if not r.is_option))
            for name in self.sources
        }

    def sources_to_open(self, names: Iterable[str]) -> dict[str, SourceSpec]:
        """Sources as models, by name, with all that is needed to open them: secrets too.

        Raises:
            ConfigError: when a variable that they refer to is not set for this process.
        """
        return {name: self._source_spec(name, self._references(name)) for name in names}

    def _source_spec(self, name: str, references: Iterable[Reference]) -> SourceSpec:
        found = self._filled(self.sources[name], references)
        return SourceSpec.model_validate({"name": name, **found})

    def _references(self, source: str = "") -> list[Reference]:
        return [each for each in self.references if each.source == source]

    def _filled(self, value: dict[str, Any], references: Iterable[Reference]) -> dict[str, Any]:
        return filled_in(value, references, os.environ, self._process)

    def read_by(self, process: str) -> Self:
        """The same request; errors name the process that lacks something.

        This process hides secrets of sources from now on, even those that it does not need.
        """
        self._process = process
        for source in self.sources.values():
            hide_options(source, os.environ)
        return self

    @property
    def fingerprint(self) -> str:
        """Equal for requests that differ only in `windows`, `references` and where state is.

        Values of the environment count as they are now, except in options of sources: these hold
        secrets, so the references count instead. A new password does not make a different job, and
        planning notices when another place has other data.
        """
        return self._fingerprint(_ASIDE)

    @property
    def line_fingerprint(self) -> str:
        """As that, and equal for all jobs of a line with the same declarations."""
        return self._fingerprint({*_ASIDE, "job_id", "reprocess", "publishes"})

    def _fingerprint(self, aside: set[str]) -> str:
        requested = self.model_dump(mode="json", exclude=aside)
        requested["pipeline"] = self._current(self.pipeline, "")
        requested["sources"] = {
            name: self._current(source, name) for name, source in self.sources.items()
        }
        return hashlib.sha256(json.dumps(requested, sort_keys=True).encode()).hexdigest()

    def _current(self, value: dict[str, Any], source: str) -> dict[str, Any]:
        wanted = (each for each in self._references(source) if not each.is_option)
        return self._filled(value, wanted)


class JobStatus(Message):
    """The state of a job, written by its supervisor. `lost` is never written: readers find it.

    state: `lost` means that the supervisor died; submitting the same job again continues it.
    epoch: the submission that the running (or last) supervisor answers to; grows.
    restarts: by role, and of the supervisor, over all supervisors of one run.
    ends: unexpected ends by process (`driver-0`), bounded by `restarts_max`.
    pids: of living processes by name, `supervisor` and `<role>-<index>`.
    cancelled_by: epoch of the cancel request that was accepted.
    registered: how many data executors the driver knows, of those that run now.
    unmet: why the limits of a process do not hold as wanted, by process.
    acted_on: the version of what is wanted that its processes have.
    hung: processes that were ended because they made no progress, and why; the newest ones.
    peaks: the most memory of each process, in bytes, as far as it was seen.
    phases: seconds by what the supervisor did: start, run, stop.
    """

    job_id: str
    state: State
    epoch: int
    restarts: dict[str, int] = Field(
        default_factory=lambda: dict.fromkeys((SUPERVISOR, *(role.name for role in ROLES)), 0)
    )
    ends: dict[str, int] = Field(default_factory=dict)
    registered: int = 0
    unmet: dict[str, str] = Field(default_factory=dict)
    acted_on: int = 0
    hung: list[str] = Field(default_factory=list)
    error: ErrorReport | None = None
    pids: dict[str, int] = Field(default_factory=dict)
    cancelled_by: int | None = None
    submitted_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    peaks: dict[str, int] = Field(default_factory=dict)
    phases: dict[str, float] = Field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the job has ended (a lost one has not)."""
        return self.state in ENDED_STATES

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_STATES


def _with_name(spec: PipelineSpec | SourceSpec) -> dict[str, Any]:
    return {"name": spec.name, **spec.model_dump(mode="json")}
