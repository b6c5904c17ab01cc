"""The roles of a job. A further one is an entry point and its module: nothing else names roles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from forebay.config.role_environment import Access
from forebay.config.specs.jobs import ProgressDeadlinesSpec, RoleSpec, RolesSpec
from forebay.errors import ConfigError
from forebay.system.names import is_name

ENTRY_POINTS = "forebay.roles"
SUPERVISOR = "supervisor"  # it is no role: it has them


@dataclass(frozen=True)
class Role:
    """What a supervisor needs to know of a role. They start in the order of the table.

    module: run with `python -m`, with `--job DIR --index N --attempt N`; the attempts of a process
    ascend. block: the part of `job.roles` that it runs with; none for a role that others add.
    counts: whether that says how many there are.
    deadline: how long one may make no progress. ends_job: it ends by itself, and its exit code 0 is
    the success of the job; all others serve until they are stopped. trains_line: it gets
    `--lease-epoch N`, against which every change of the model line is checked. reads_payloads: a
    signal that ends it may be the fault of what it reads. body: `module:function` of what a thread
    runs in its place, and what its module gives to `forebay.executors.role.run_role`, so that its
    process can stay for the next job; without, it runs in processes of one job only.
    """

    name: str
    module: str
    access: Access
    block: Literal["", "data", "trainer"] = ""
    counts: bool = False
    deadline: Callable[[ProgressDeadlinesSpec], timedelta] = lambda deadlines: deadlines.data
    ends_job: bool = False
    trains_line: bool = False
    reads_payloads: bool = False
    body: str = ""

    def settings(self, declared: RolesSpec) -> RoleSpec:
        return getattr(declared, self.block) if self.block else RoleSpec()

    def count(self, declared: RolesSpec) -> int:
        return self.settings(declared).count if self.counts else 1


# It opens sources too, so it runs with the settings of data executors.
DRIVER = Role(
    name="driver",
    module="forebay.executors.driver",
    access=Access(sources=True, database=True),
    block="data",
    deadline=lambda deadlines: deadlines.driver,
    body="forebay.executors.driver.driver:run",
)
# It decodes what nobody trusts, so it alone does not get the database's address.
DATA = Role(
    name="data",
    module="forebay.executors.data_executor",
    access=Access(sources=True),
    block="data",
    counts=True,
    deadline=lambda deadlines: deadlines.data,
    reads_payloads=True,
    body="forebay.executors.data_executor.executor:run",
)
TRAINER = Role(
    name="trainer",
    module="forebay.executors.trainer",
    access=Access(database=True, bucket=True),
    block="trainer",
    deadline=lambda deadlines: deadlines.trainer,
    ends_job=True,
    trains_line=True,
    body="forebay.executors.trainer.train:run",
)
ROLES = (DRIVER, DATA, TRAINER)


def roles() -> tuple[Role, ...]:
    """The roles of every job: ours, then those that installed packages add.

    Raises:
        ConfigError: when an entry point is no role, or has the name of another one or none that
            files can have.
    """
    found = list(ROLES)
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda each: each.name):
        try:
            role = point.load()
        except (ImportError, AttributeError) as error:
            raise _refused(point, f"cannot be imported: {error}") from error
        taken = {SUPERVISOR, *(each.name for each in found)}
        if not isinstance(role, Role) or role.name in taken or not is_name(role.name):
            raise _refused(point, "is not a role with a name of its own")
        found.append(role)
    return tuple(found)


def _refused(point: EntryPoint, why: str) -> ConfigError:
    return ConfigError(
        f"entry point {point.name!r} of {ENTRY_POINTS} ({point.value}) {why}: correct the package "
        "that installs it, or remove that"
    )
