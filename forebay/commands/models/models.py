"""`forebay models ls`: what each window's model was built on, and which one serves."""

from __future__ import annotations

from typing import Any

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.known_pipeline import require_known
from forebay.commands.shared.output import Form, Output, OutputFormat

COLUMNS = ("window", "generation", "built_on", "steps", "rows", "state", "finished", "model")
_BELOW = ("model",)
group = typer.Typer(help="Trained models.", no_args_is_help=True)


@group.command()
def ls(
    pipeline: arguments.PipelineName,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """List the models of a line, oldest window first.

    Every generation of every window is listed, in the order of training.
    """
    from forebay.datatasks.plans.ledger import Ledger
    from forebay.executors.model_line.chain import ModelChain
    from forebay.executors.model_line.link import Link
    from forebay.home.database.format import open_home
    from forebay.home.store.open import store_of

    chain = ModelChain(open_home(), pipeline, line)
    serving, store = chain.published(), store_of(chain.home)

    links, stale = chain.links(), chain.stale_reasons()
    if not links:
        require_known(chain.home, pipeline, config, line)
    newest = {link.window: link.generation for link in links}
    ledger = Ledger(chain.home, pipeline, line)
    forgotten, changed = ledger.forgotten(newest), ledger.data_changed(newest)

    def row(link: Link) -> dict[str, Any]:
        state = stale.get(link.window) or changed.get(link.window, "current")
        if link.window in forgotten:
            state = "forgotten (the next run trains it again)"
        if newest[link.window] != link.generation:
            state = "replaced"
        if serving and (serving.window, serving.generation) == (link.window, link.generation):
            state += ", serves"
        model = link.files.get("saved_model")
        return {
            "window": link.window,
            "generation": link.generation,
            "built_on": f"{link.parent.window} g{link.parent.generation}" if link.parent else None,
            "steps": link.steps,
            "rows": sum(link.trained(source).rows for source in link.seen),
            "state": state,
            "finished": link.finished_at,
            "model": store.url(model) if model is not None else None,
        }

    shown = Output(output)
    if not links and not shown.is_json:
        shown.line(f"pipeline {pipeline!r} has no trained window on line {line!r}")
        return
    shown.table([row(link) for link in links], COLUMNS, _BELOW)
