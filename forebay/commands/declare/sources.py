"""`forebay sources`: declared sources and installed kinds."""

from __future__ import annotations

from shlex import join

from forebay.commands.shared import arguments
from forebay.commands.shared.output import Form, Output, OutputFormat, note
from forebay.config.load import Project, load_project
from forebay.config.specs.registry import installed_kinds
from forebay.config.yaml.problems import errors
from forebay.system.output.counted import counted

_SOURCE_COLUMNS = ("source", "kind", "columns", "event_time", "starts", "ends", "pipelines")
_KIND_COLUMNS = ("kind", "bounded", "cut_by", "options")


def sources(
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG, output: Form = OutputFormat.TEXT
) -> None:
    """List declared sources and installed kinds of storage."""
    project = load_project(config)
    shown = Output(output)
    declared, kinds = _declared(project), _kinds()
    if shown.is_json:
        shown.json({"sources": declared, "kinds": kinds})
    else:
        if declared:
            shown.table(declared, _SOURCE_COLUMNS)
        else:
            shown.line(f"no sources are declared in {project.config_dir / 'sources'}")
        shown.line()
        shown.table(kinds, _KIND_COLUMNS)
    wrong = errors(project.problems)
    if wrong:
        found = counted(len(wrong), "problem")
        command = join(["forebay", "check", "--config", str(config)])
        note(f"{found} in the YAML files: `{command}` lists them")


def _declared(project: Project) -> list[dict[str, object]]:
    return [
        {
            "source": name,
            "kind": spec.kind,
            "columns": len(spec.columns),
            "event_time": spec.event_time,
            "starts": spec.starts,
            "ends": spec.ends,
            "pipelines": [
                pipeline.name
                for pipeline in project.pipelines.values()
                if name in pipeline.source_names
            ],
        }
        for name, spec in sorted(project.sources.items())
    ]


def _kinds() -> list[dict[str, object]]:
    return [
        {
            "kind": name,
            "bounded": kind.bounded,
            "cut_by": "event time" if kind.bounded else "publication time",
            "options": list(kind.Options.model_fields),
        }
        for name, kind in installed_kinds().items()
    ]
