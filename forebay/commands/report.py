"""`forebay report SUMMARY`: a run's tables as text, and the whole report as one HTML file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from forebay.commands.output import Form, Output, OutputFormat, option

HtmlFile = Annotated[
    Path | None,
    option("--html", help="Where the page goes (default: beside the summary).", metavar="FILE"),
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("report")
    def report(
        summary: Annotated[Path, typer.Argument(help="FILE of `forebay run … --summary FILE`.")],
        html: HtmlFile = None,
        output: Form = OutputFormat.TEXT,
    ) -> None:
        """Show what a run came to, and write it as an HTML file that needs no network."""
        from rich.console import Console

        from forebay.executors.files import naming
        from forebay.report.facts import read_facts
        from forebay.report.html import render_html
        from forebay.report.text import print_report

        facts = read_facts(summary)
        target = html or summary.with_suffix(".html")
        with naming(target):
            target.write_text(render_html(facts))
        out = Output(output)
        if out.is_json:
            out.json({"html": str(target), **asdict(facts)})
        else:
            print_report(facts, Console())
            out.line(f"report  {target}")
