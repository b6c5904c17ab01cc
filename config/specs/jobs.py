"""How a pipeline runs: roles, failover, checkpoints, publication."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib.metadata import entry_points
from posixpath import normpath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from forebay.config.specs.base import Duration, MemorySize, Spec, format_duration
from forebay.errors import ConfigError
from forebay.home.store.s3_address import s3_address
from forebay.system.names import is_one_line

PLANES = "forebay.planes"  # a group of entry points, ours among them
LOCAL, INLINE = "local", "inline"
STANDING, CONTINUOUS = "standing", "continuous"
# How many windows keep copies of the model by default.
_MODELS_KEPT = 400
# More than the hours of 100,000 years. Databases count to 2^63.
_WINDOWS_KEPT_MAX = 1_000_000_000
_LINE = "{line}"
_BRACES = re.compile(r"\{[^}]*\}?|\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?|\*")
# A process checks its own progress twice a second, its supervisor once a second.
_DEADLINE_SHORTEST, _DEADLINE_LONGEST = timedelta(seconds=5), timedelta(days=1)


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        # Not quoted: a value written here, or filled in for ${NAME}, may be a secret.
        raise ValueError(
            "write the name of a variable (ACME_TOKEN) or a prefix (ACME_*), without a value: "
            "values come from the environment"
        )
    return text


def _serving_path(text: str) -> str:
    """Not quoted in errors: an address may hold a password."""
    if text.startswith("s3://"):
        is_place = _is_folder_of_bucket(text)
    else:
        is_place = normpath(text).strip("./") != "" and not text.startswith("~")
        is_url = "://" in text or ":" in text.partition("/")[0]  # s3:/bucket is meant as one
        is_place = is_place and not is_url
    if not is_place or not is_one_line(text):
        raise ValueError(
            "write the path of a folder below another, or s3://BUCKET/FOLDER without a user and a "
            "password; ?endpoint_override=HOST:PORT, scheme and region may follow"
        )
    if _BRACES.findall(text) not in ([], [_LINE]):
        raise ValueError("only {line} may be in braces, once: it stands for the model line's name")
    return text


def _is_folder_of_bucket(text: str) -> bool:
    try:
        return bool(s3_address(text.replace(_LINE, "line")).prefix)
    except ConfigError:
        return False


class RuntimeSpec(Spec):
    """What a role's processes run in.

    `python` is their interpreter (default: the submitter's). `environment` names variables that
    they inherit in addition to those that Forebay knows they need.
    """

    python: str | None = Field(
        default=None,
        description="Path of the Python interpreter; by default the one that submits the job",
    )
    environment: tuple[Annotated[str, AfterValidator(_variable)], ...] = Field(
        default=(),
        description="Further variables that processes inherit: names, or prefixes such as ACME_*",
    )


class RoleSpec(Spec):
    """Processes of one role."""

    count: int = Field(default=1, ge=1, le=1024, description="Number of processes")
    runtime: RuntimeSpec = Field(
        default=RuntimeSpec(), description="Interpreter and environment of the processes"
    )
    threads: int = Field(
        default=2,
        ge=1,
        le=256,
        description="Threads of each process: a data executor decodes with them, the trainer runs "
        "TensorFlow with them",
    )
    cpu: float | None = Field(
        default=None,
        ge=0.05,
        le=1024,
        description="Most cores that each process may use, such as 0.5, where the plane can limit "
        "them (default: no limit)",
    )
    memory: MemorySize | None = Field(
        default=None,
        ge=64 * 2**20,
        description="Most memory of each process, such as 2GiB, where the plane can limit it. A "
        "process that needs more is ended (default: no limit)",
    )


class TrainerRoleSpec(RoleSpec):
    """The trainer's process."""

    count: int = Field(default=1, description="Always 1: a job has one trainer")

    @field_validator("count")
    @classmethod
    def _one(cls, count: int) -> int:
        if count != 1:
            raise ValueError(f"count is {count}, but a job has one trainer: remove count")
        return count


class RolesSpec(Spec):
    """All roles of a job."""

    data: RoleSpec = Field(
        default=RoleSpec(), description="Data executors: they read, decode and serve rows"
    )
    trainer: TrainerRoleSpec = Field(
        default=TrainerRoleSpec(), description="The trainer: always one process"
    )


class BuffersSpec(Spec):
    """Bounds of the data path."""

    rows_max: int = Field(
        default=131_072,
        ge=1,
        description="Most rows of one source that a data executor has decoded but not sent",
    )
    bytes_max: int = Field(default=64 * 2**20, ge=2**16, description="Most bytes of these rows")
    chunk_rows: int = Field(
        default=32_768,
        ge=1,
        description="Most rows decoded at a time; fewer if there are many columns, or if rows_max "
        "leaves less room for each task that is read",
    )
    credits: int = Field(default=4, ge=1, description="Minibatches in flight per data executor")
    flush_seconds: float = Field(
        default=0.2,
        gt=0,
        description="How long a partial minibatch waits without growing before it is sent; while "
        "rows of the next hour are on their way, up to settle_seconds longer",
    )
    settle_seconds: float = Field(
        default=5.0,
        ge=0,
        description=(
            "How long rows of an hour wait for other rows of that hour that are still being read, "
            "so that their order does not depend on which source is faster"
        ),
    )
    align_hours: int = Field(
        default=6,
        ge=1,
        description="With several data executors: how many hours of data a task may be ahead of "
        "the earliest unread row",
    )


class ProgressDeadlinesSpec(Spec):
    """How long a process of each role may make no progress before it is ended and restarted.

    Waiting for rows, for buffer space or for the database is not a hang. Nor is computing.
    """

    driver: Duration = Field(
        default=timedelta(minutes=5), description="For the driver, which hands out data tasks"
    )
    data: Duration = Field(
        default=timedelta(minutes=5), description="For data executors: longer than any single read"
    )
    trainer: Duration = Field(
        default=timedelta(minutes=5),
        description="For the trainer: longer than its slowest step, checkpoint and export",
    )

    @field_validator("*")
    @classmethod
    def _in_bounds(cls, value: timedelta) -> timedelta:
        if not _DEADLINE_SHORTEST <= value <= _DEADLINE_LONGEST:
            shortest, longest = map(format_duration, (_DEADLINE_SHORTEST, _DEADLINE_LONGEST))
            raise ValueError(f"{format_duration(value)}: must be between {shortest} and {longest}")
        return value


class FailoverSpec(Spec):
    """How often a role may be restarted, and when a silent process counts as dead."""

    restarts_max: int = Field(
        default=8,
        ge=0,
        description="Most restarts of one process in a job. If it ends once more, the job fails",
    )
    heartbeat_timeout: Duration = Field(
        default=timedelta(seconds=10),
        description="A process that has been silent for this long counts as dead",
    )
    progress_deadlines: ProgressDeadlinesSpec = Field(
        default=ProgressDeadlinesSpec(),
        description="How long a process may be alive without making progress, from 5s to 1d",
    )
    task_attempts_max: int = Field(
        default=3, ge=1, description="Most attempts to read one data task before the run fails"
    )

    @field_validator("heartbeat_timeout")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        if value < timedelta(seconds=1):
            raise ValueError("every process would count as dead: write at least 1s")
        return value


class CheckpointSpec(Spec):
    """When the model and its data positions are sealed together."""

    every_steps: int = Field(
        default=200, ge=1, description="Training steps between two checkpoints"
    )
    windows_kept: int | None = Field(
        default=None,
        ge=1,
        le=_WINDOWS_KEPT_MAX,
        description="How many of the newest windows keep their checkpoints, which are needed to "
        "train the windows after them again and to judge events of their time (default: "
        "job.windows_kept, at most 400, or more while labels may still arrive)",
    )


GateMetric = Literal["auc", "log_loss", "normalised_entropy"]


class PublishSpec(Spec):
    """Whether a finished window's model becomes the one that serves.

    `when: gate` lets another paradigm of `train.compare` serve if event scores show that it is
    significantly better by `metric`: than the declared one (`against: best_paradigm`), or than that
    of the gate's newest decision (`against: served`). The newest 48 windows that have all their
    labels decide, of which each counts half as much as one a day (of hours) or a week (of days)
    later. The declared one serves until `min_rows` of their rows are judged, with both classes
    present; with fewer than three `train.seeds`, of three windows at least.
    """

    when: Literal["always", "never", "gate"] = Field(
        default="always",
        description="Publish a finished window's model `always` or `never`, or let the `gate` "
        "decide which paradigm serves",
    )
    metric: GateMetric = Field(
        default="auc", description="What the gate compares, measured on event scores"
    )
    against: Literal["best_paradigm", "served"] = Field(
        default="best_paradigm",
        description="Which paradigm serves until another one is significantly better: the declared "
        "one (`best_paradigm`, or the one that serves while it is ahead of that), or that of the "
        "gate's newest decision (`served`)",
    )
    min_rows: int = Field(
        default=2_000,
        ge=2,
        description="Until so many rows of the newest 48 windows are judged, of at least three "
        "windows where `train.seeds` is below 3, the gate changes nothing",
    )
    label: str | None = Field(
        default=None,
        description="With several labels (`dataset.named_labels`): the one whose event scores "
        "decide; by default the first",
    )
    windows_kept: int | None = Field(
        default=None,
        ge=1,
        le=_WINDOWS_KEPT_MAX,
        description="How many of the newest windows keep their exported models, in addition to "
        "the one that serves (default: job.windows_kept, at most 400)",
    )

    serving: Annotated[str, AfterValidator(_serving_path)] | None = Field(
        default=None,
        description="Where a model server reads the model that serves: a folder, relative to the "
        "project's, or `s3://BUCKET/FOLDER`. Each switch writes PATH/INTEGER/, then "
        "PATH/current.json. It is the path of the line `main`; with `{line}` in it, of every line",
    )
    every: Duration | None = Field(
        default=None,
        ge=timedelta(seconds=1),
        le=timedelta(hours=12),
        description="With `process: continuous`: how often the model of the window that goes on "
        "is exported and serves, by the paradigm that the gate chose last; the window's end "
        "decides anew (default: only ended windows serve)",
    )
    serving_kept: int = Field(
        default=3,
        ge=2,
        le=1_000,
        description="How many of the newest PATH/INTEGER/ are kept at `serving`; a server may "
        "still read the one before the last",
    )


class StandingSpec(Spec):
    """When processes that stay end (`process: standing`)."""

    idle: Duration = Field(
        default=timedelta(minutes=20),
        ge=timedelta(seconds=1),
        le=timedelta(days=7),
        description="They end when no window comes for so long",
    )
    ahead: Duration | None = Field(
        default=None,
        ge=timedelta(seconds=1),
        le=timedelta(hours=1),
        description="Once ended after `idle`, they start again so long before the window that goes "
        "on now is over (default: with the next window)",
    )
    memory: MemorySize | None = Field(
        default=None,
        ge=64 * 2**20,
        description="If they hold more than this after a window, they start anew for the next one "
        "(default: no limit)",
    )


class ContinuousSpec(Spec):
    """How the window that goes on now is trained (`process: continuous`)."""

    slice: Duration = Field(
        default=timedelta(seconds=10),
        ge=timedelta(seconds=1),
        le=timedelta(minutes=10),
        description="How much of a stream is planned at a time, and so how long a row may wait to "
        "be read",
    )
    lag_slo: Duration | None = Field(
        default=None,
        ge=timedelta(seconds=1),
        le=timedelta(days=1),
        description="The share of rows that a step uses later than this after they were published "
        "is told with the lag (default: none is)",
    )
    seal: Duration = Field(
        default=timedelta(seconds=30),
        ge=timedelta(seconds=1),
        le=timedelta(hours=1),
        description="Longest time between two checkpoints: what is trained again after a kill",
    )


class JobSpec(Spec):
    """Everything about running that is not data or model.

    `windows_kept` bounds what a model line keeps of its older windows: scores, steps, folders of
    ended jobs, replaced plans. Checkpoints and exports, which are as big as the model, have bounds
    of their own.
    """

    plane: str = Field(
        default=LOCAL,
        description="Where the processes run: `local`, on this machine; `inline`, as threads of "
        "`forebay run` or of a reading, for tests and notebooks; or what an installed package adds",
    )
    process: Literal["per_window", "standing", "continuous"] = Field(
        default="per_window",
        description="`per_window`: the processes of a job end with it. `standing`: they stay for "
        "the next window of the line, which then starts at once. `continuous`: they stay, and "
        "`forebay run --follow` trains the window that goes on now while its streams grow",
    )
    continuous: ContinuousSpec = Field(
        default=ContinuousSpec(), description="How the window that goes on now is trained"
    )
    standing: StandingSpec = Field(
        default=StandingSpec(), description="When processes that stay end"
    )
    roles: RolesSpec = Field(default=RolesSpec(), description="Processes of the job")
    buffers: BuffersSpec = Field(default=BuffersSpec(), description="Limits of the data path")
    failover: FailoverSpec = Field(
        default=FailoverSpec(), description="What happens when processes die or hang"
    )
    checkpoint: CheckpointSpec = Field(
        default=CheckpointSpec(),
        description="When the model and its data positions are saved together",
    )
    publish: PublishSpec = Field(
        default=PublishSpec(), description="Which model serves after a window is trained"
    )
    judge_rows_max: int = Field(
        default=50_000,
        ge=0,
        le=10_000_000,
        description="Most events of a window that are scored again by the model of their time, "
        "sampled by a hash of the event id. 0 judges none",
    )
    windows_kept: int = Field(
        default=10_000,  # more than a year of hours
        ge=1,
        le=_WINDOWS_KEPT_MAX,
        description="How many of the newest windows of a model line keep their scores, steps, "
        "folders of ended jobs and replaced plans. Checkpoints and exported models have limits of "
        "their own: `job.checkpoint.windows_kept` and `job.publish.windows_kept`",
    )

    @field_validator("plane")
    @classmethod
    def _installed(cls, name: str) -> str:
        if name in {
            LOCAL,
            INLINE,
        }:  # looking for others reads what every installed package says of itself
            return name
        known = sorted({LOCAL, INLINE, *(point.name for point in entry_points(group=PLANES))})
        if name not in known:
            raise ValueError(f"no plane {name!r} is installed, but {', '.join(known)}")
        return name

    @model_validator(mode="after")
    def _standing_here(self) -> Self:
        if self.process == STANDING and self.plane != LOCAL:
            raise ValueError(
                f"process is standing, but the processes of plane {self.plane} end with their job: "
                "remove process, or let plane be local"
            )
        return self

    @model_validator(mode="after")
    def _judged_for_the_gate(self) -> Self:
        if self.publish.when == "gate" and self.judge_rows_max == 0:
            raise ValueError(
                "publish.when is gate, which decides by judged rows, but judge_rows_max is 0: "
                "change one of them"
            )
        return self

    @property
    def stays(self) -> bool:
        """Whether its processes stay for the line's next window."""
        return self.process == STANDING or (self.process == CONTINUOUS and self.plane == LOCAL)

    @property
    def checkpoints_kept(self) -> int:
        return self.checkpoint.windows_kept or min(self.windows_kept, _MODELS_KEPT)

    @property
    def exports_kept(self) -> int:
        return self.publish.windows_kept or min(self.windows_kept, _MODELS_KEPT)
