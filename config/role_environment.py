"""Which environment variables a job's processes, and the stages that plan for it, inherit.

Each role gets what every Forebay process needs, what its own work needs, the variables that its
declarations refer to, and those that the role's `runtime.environment` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forebay.config.specs.jobs import JobSpec, RuntimeSpec
from forebay.config.yaml.environment import OPTIONS, names_of
from forebay.home.store.base import STORE_NAME
from forebay.system.environment import BUCKET, HOME_DATABASE, PROCESS, STORAGE, Patterns, inherited


@dataclass(frozen=True)
class Access:
    """What a role opens. It inherits what that needs, and nothing else.

    sources: with their secrets. database, bucket: the home's; the bucket only if the store is one.
    """

    sources: bool = False
    database: bool = False
    bucket: bool = False


def role_variables(
    access: Access,
    environ: Mapping[str, str],
    runtime: RuntimeSpec,
    pipeline: Mapping[str, Any],
    sources: Mapping[str, Mapping[str, Any]],
) -> dict[str, str]:
    """What a role inherits; of sources that it does not open, what is referred to outside options.

    environ: the supervisor's. pipeline, sources: declarations, with `${NAME}` not filled in.
    """
    declared = names_of(pipeline)
    for source in sources.values():
        parts = (value for key, value in source.items() if access.sources or key != OPTIONS)
        declared = declared.union(*map(names_of, parts))
    in_bucket = access.bucket and environ.get(STORE_NAME, "").startswith("s3:")
    own = (
        *(STORAGE if access.sources else ()),
        *(HOME_DATABASE if access.database else ()),
        *(BUCKET if in_bucket else ()),
        *runtime.environment,
    )
    return inherited(environ, (*PROCESS, *own, *declared))


def declared_variables(job: JobSpec, referred: Iterable[str]) -> Patterns:
    """Environment variables that a pipeline declares for all of its processes: names and prefixes.

    referred: names that the pipeline and its sources refer to.
    """
    roles = (job.roles.data, job.roles.trainer)
    named = (name for role in roles for name in role.runtime.environment)
    return tuple(sorted({*named, *referred}))
