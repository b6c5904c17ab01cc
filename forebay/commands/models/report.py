"""`forebay report`: the results of trained windows, as text and as one HTML file."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, option, terminal_width
from forebay.system.output.redaction import redacted

if TYPE_CHECKING:
    from forebay.executors.evaluation.run_summary import Summary
    from forebay.executors.stages.target import LineTarget

HtmlFile = Annotated[
    Path | None,
    option(
        "--html",
        help="Where to write the page (default: beside the summary; of a pipeline, in "
        "FOREBAY_HOME/reports).",
        metavar="FILE",
    ),
]


def report(
    subject: Annotated[
        str,
        typer.Argument(
            help="A file of `forebay run … --summary FILE`; or a pipeline, with --from and --to.",
            metavar="SUMMARY|PIPELINE",
        ),
    ],
    first: Annotated[str, option("--from", help="First window of the pipeline.")] = "",
    last: arguments.LastWindow = "",
    html: HtmlFile = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show results of trained windows; write them as HTML.

    The HTML file needs no network.

    It shows windows trained by `forebay run` and by Airflow.
    """
    with working("reading results"):
        from forebay.report.facts import read_summary
        from forebay.report.html import render_html
        from forebay.report.text import report_lines
        from forebay.system.files.durable import writing

        if first or last:
            summary, source = _of_range(config, subject, first, last, line)
        else:
            source = Path(subject)
            summary = read_summary(source)
        page = html or source.with_suffix(".html")
        with writing(page):
            page.write_text(redacted(render_html(summary)))
    out = Output(output)
    if out.is_json:
        out.json({"html": str(page), **summary.document()})
    else:
        for text in report_lines(summary, terminal_width()):
            out.exact(text)
        out.line(f"report  {page}")


def _changes(target: LineTarget, config: Path, keys: list[str]) -> list[str]:
    """Notes on files that were added, changed or removed since the windows were planned."""
    from forebay.datatasks.look.changes import changes_since

    trained = {key: link.generation for key in keys if (link := target.chain.newest(key))}
    ledger, project = target.ledger, target.project
    plans = list(ledger.plans(trained).values())
    changed = changes_since(project.root, target.pipeline, project.sources, ledger, plans)
    why = ["forebay", "why", target.pipeline.name]
    options = arguments.place_options(config, target.line)
    return [
        f"window {key}: {'; '.join(texts)} (`{join([*why, key, *options])}`)"
        for key, texts in changed.items()
    ]


def _of_range(
    config: Path, pipeline: str, first: str, last: str, line: str
) -> tuple[Summary, Path]:
    """The summary of trained windows, however they were trained, and the path of its file."""
    from forebay.datatasks.window_range import parse_range
    from forebay.executors.evaluation.range_summary import summarise_windows
    from forebay.executors.stages.target import LineTarget
    from forebay.home.job_id import range_job_id
    from forebay.system.files.durable import write_atomically

    target = LineTarget.load(config, pipeline, line)
    keys = [window.key for window in parse_range(target.pipeline, first, last)]
    summary = summarise_windows(target.pipeline, target.chain, keys)
    notes = [*summary.notes, *_changes(target, config, keys)]
    summary = summary.model_copy(update={"notes": notes})
    name = range_job_id(pipeline, line, keys[0], keys[-1])
    path = target.home.root / "reports" / f"{name}.json"
    write_atomically(path, redacted(json.dumps(summary.document(), indent=1)) + "\n")
    return summary, path
