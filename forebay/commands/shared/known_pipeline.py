"""Names in commands that need no YAML: a pipeline or line that nothing knows is a mistyped one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.config.yaml.files import yaml_files
from forebay.config.yaml.spelling import nearest
from forebay.errors import UsageError
from forebay.system.names import shown

if TYPE_CHECKING:
    from pathlib import Path

    from forebay.home.paths import Home


def require_known(home: Home, pipeline: str, config: Path, line: str | None = None) -> None:
    """Call when nothing was found, before saying so.

    line: the line that was asked for, if any.

    The declarations are not read, only their file names: what is wrong with them does not matter,
    and a pipeline whose file was deleted is still known by its records.

    Raises:
        UsageError: when neither a file nor a record has this name, with the nearest one.
    """
    from forebay.home.database.recorded import recorded_lines, recorded_pipelines
    from forebay.home.paths import DEFAULT_LINE

    files, _ = yaml_files(config / "pipelines")
    known = sorted({path.stem for path in files} | recorded_pipelines(home))
    wanted = pipeline
    message = (
        f"no pipeline {shown(pipeline)} in {config}/pipelines, and no record of one in {home.root}"
    )
    if pipeline in known:
        known = sorted({DEFAULT_LINE} | recorded_lines(home, pipeline))
        if line is None or line in known:
            return
        wanted, message = line, f"pipeline {pipeline!r} has no line {shown(line)}"
    guess = nearest(wanted, known)
    way_out = f" (did you mean {guess}?)" if guess else ""
    raise UsageError(f"{message}{way_out}. Known: {', '.join(known) or 'none'}")
