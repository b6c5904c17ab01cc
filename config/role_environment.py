"""Which environment variables a job's processes, and the stages that plan for it, inherit.

Each role gets what every Forebay process needs, what its own work needs, the variables that its
declarations refer to, and those that the role's `runtime.environment` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from forebay.config.specs.jobs import JobSpec
from forebay.config.yaml.environment import OPTIONS, names_of
from forebay.home.store.base import STORE_NAME
from forebay.system.environment import BUCKET, HOME_DATABASE, PROCESS, STORAGE, Patterns, inherited


def role_variables(
    role: Literal["driver", "data", "trainer"],
    environ: Mapping[str, str],
    job: JobSpec,
    pipeline: Mapping[str, Any],
    sources: Mapping[str, Mapping[str, Any]],
) -> dict[str, str]:
    """What a role inherits.

    The driver opens sources too and runs as a data role. A data executor decodes untrusted data, so
    it alone does not get the database's address. The trainer opens no sources: it gets the bucket's
    keys if the store is in a bucket, and what sources refer to outside their options.

    environ: the supervisor's. pipeline, sources: declarations, with `${NAME}` not filled in.
    """
    declared = names_of(pipeline)
    for source in sources.values():
        parts = (value for key, value in source.items() if role != "trainer" or key != OPTIONS)
        declared = declared.union(*map(names_of, parts))
    if role == "trainer":
        bucket = BUCKET if environ.get(STORE_NAME, "").startswith("s3:") else ()
        own = (*HOME_DATABASE, *bucket, *job.roles.trainer.runtime.environment)
    else:
        own = (*STORAGE, *job.roles.data.runtime.environment)
        own = own if role == "data" else (*HOME_DATABASE, *own)
    return inherited(environ, (*PROCESS, *own, *declared))


def declared_variables(job: JobSpec, referred: Iterable[str]) -> Patterns:
    """Environment variables that a pipeline declares for all of its processes: names and prefixes.

    referred: names that the pipeline and its sources refer to.
    """
    roles = (job.roles.data, job.roles.trainer)
    named = (name for role in roles for name in role.runtime.environment)
    return tuple(sorted({*named, *referred}))
