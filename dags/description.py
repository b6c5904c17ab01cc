"""What a DAG's page says about its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from forebay.config.base import format_duration
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec


def markdown(spec: PipelineSpec, sources: Mapping[str, SourceSpec], config_dir: Path) -> str:
    """The pipeline's description, a summary of its declaration, and its sources as a table."""
    dataset = spec.dataset
    zone = "" if dataset.timezone == "UTC" else f" of {dataset.timezone}"
    until = "on" if dataset.end is None else f"until {dataset.end:%Y-%m-%dT%H:%MZ}"
    runs = (
        f"Each run processes one window ({dataset.window}{zone}), "
        f"from {dataset.grid.at(dataset.start).key} {until}. "
        f"Model line `main`, paradigm `{spec.train.paradigms[0]}`."
    )
    rows = [
        f"| {name} | {sources[name].kind} | {stream} | {format_duration(declared.offset)} |"
        for stream, declared in dataset.streams.items()
        for name in declared.sources
    ]
    parts = [
        spec.description or f"Pipeline `{spec.name}`.",
        runs,
        "\n".join(["| source | kind | stream | offset |", "|---|---|---|---|", *rows]),
        f"Declared in `{config_dir.absolute() / 'pipelines' / spec.name}.yaml`.",
    ]
    return "\n\n".join(parts) + "\n"
