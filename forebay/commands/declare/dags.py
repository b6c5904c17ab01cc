"""`forebay dags sync`: the files that Airflow parses, one for each pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.output import Form, Output, OutputFormat, option
from forebay.system.output.counted import counted

DagsDir = Annotated[Path, option("--dags", help="Airflow's DAGs folder.", metavar="DIR")]
group = typer.Typer(help="The DAGs that Airflow sees.", no_args_is_help=True)


@group.command("sync")
def sync_command(
    dags: DagsDir,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    followed: Annotated[
        Path | None,
        option(
            "--followed",
            help="Write here, as JSON, which pipelines `forebay up` follows: by name, a digest of "
            "their declarations.",
            metavar="FILE",
        ),
    ] = None,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Write a DAG file for each pipeline.

    Files of removed pipelines are deleted.

    No other files are touched.
    """
    from forebay.dags.sync import sync

    report = sync(config, dags)
    if followed is not None:
        from forebay.dags.sync import followed as followed_in
        from forebay.system.files.durable import write_atomically

        write_atomically(followed, json.dumps(followed_in(config)))
    shown = Output(output)
    if shown.is_json:
        shown.json(report._asdict())
        return
    for done, names in (("wrote", report.written), ("removed", report.removed)):
        for name in names:
            shown.line(f"{done} {dags / name}.py")
    if not report.written and not report.removed:
        shown.line(f"{dags}: {counted(len(report.kept), 'stub')}, all up to date")
