"""What a process may use, and what a job wants of its processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from forebay.config.specs.jobs import JobSpec, RoleSpec
from forebay.executors.roles.table import Role, roles
from forebay.system.message import Message


class Resources(Message):
    """Limits of one process. None: not limited."""

    cpu_cores: float | None = Field(default=None, gt=0, le=1024)
    memory_bytes: int | None = Field(default=None, gt=0)

    @classmethod
    def declared(cls, settings: RoleSpec) -> Self:
        return cls(cpu_cores=settings.cpu, memory_bytes=settings.memory)

    @property
    def without_cpu(self) -> Self:
        """For a process that starts: importing libraries takes a second of CPU, at any quota."""
        return self.model_copy(update={"cpu_cores": None})


UNLIMITED = Resources()


class Desired(Message):
    """What somebody wants of a job, by role. version: grows with each change."""

    version: int
    counts: dict[str, Annotated[int, Field(ge=0, le=1024)]]
    resources: dict[str, Resources]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.counts.keys() != self.resources.keys():
            raise ValueError("each role has a count and limits")
        return self

    @classmethod
    def declared(cls, spec: JobSpec, version: int, table: Iterable[Role] | None = None) -> Self:
        """As the pipeline says. table: roles of the job; by default of every job."""
        found = list(table or roles())
        return cls(
            version=version,
            counts={role.name: role.count(spec.roles) for role in found},
            resources={role.name: Resources.declared(role.settings(spec.roles)) for role in found},
        )

    @property
    def processes(self) -> list[tuple[str, int]]:
        """Role and index of each, in the order of their start."""
        return [(role, index) for role, count in self.counts.items() for index in range(count)]

    def resized(self, role: str, to: Resources) -> Self:
        """The next version, in which each process of a role may use as much as this."""
        resources = {**self.resources, role: to}
        return self.model_copy(update={"version": self.version + 1, "resources": resources})
