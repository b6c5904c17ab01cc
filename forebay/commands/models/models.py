"""`forebay models`: what each window's model was built on, which one serves, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.known_pipeline import require_known
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, note, option

if TYPE_CHECKING:
    from forebay.executors.serving.switch import Serving

HISTORY = ("at", "action", "window", "generation", "step", "integer", "who", "why")
Reason = Annotated[
    str | None, option("--why", help="Why, for `models show`.", callback=arguments.one_line)
]
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

    Every generation of every window is listed, in the order of training; below, the newest models
    of windows that went on (`job.publish.every`).
    """
    from forebay.datatasks.plans.ledger import Ledger
    from forebay.executors.model_line.chain import ModelChain
    from forebay.executors.model_line.link import InnerExport, Link
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

    serves = ", serves (pinned)" if serving and serving.pinned else ", serves"

    def inner(export: InnerExport) -> dict[str, Any]:
        return {
            "window": export.window,
            "generation": export.generation,
            "built_on": None,
            "steps": export.step,
            "rows": None,
            "state": "of a window that went on"
            + (serves if serving and serving.model == export.model else ""),
            "finished": export.exported_at,
            "model": store.url(export.stored),
        }

    def row(link: Link) -> dict[str, Any]:
        state = stale.get(link.window) or changed.get(link.window, "current")
        if link.window in forgotten:
            state = "forgotten (the next run trains it again)"
        if newest[link.window] != link.generation:
            state = "replaced"
        if serving and serving.model == link.model:
            state += serves
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
    shown.table([*map(row, links), *map(inner, chain.exports())], COLUMNS, _BELOW)


@group.command()
def show(
    pipeline: arguments.PipelineName,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    history: Annotated[
        int, option("--history", help="How many of the newest changes to show.", min=1)
    ] = 20,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show what serves on a line, and what served before.

    With who changed it, when and why, and where model servers read it.
    """
    serving = _serving(pipeline, config, line)
    changes = [each.model_dump() for each in reversed(serving.chain.switches()[-history:])]
    shown = Output(output)
    if shown.is_json:
        shown.json({"serves": serving.facts(), "history": changes})
        return
    _say(serving)
    if changes:
        shown.table(changes, HISTORY, ("who", "why"))


@group.command()
def serve(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    why: Reason = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Let any window's model serve, pinned until `unpin`.

    The newest model of the window: exported from its checkpoint, if that is kept and the model was
    not exported. Training, judging and the gate go on; only what serves stays.
    """
    serving = _serving(pipeline, config, line)
    with working("exporting what is not exported yet, and bringing it up"):
        serving.serve(window, why or "")
    _say(serving)


@group.command()
def rollback(
    pipeline: arguments.PipelineName,
    why: Reason = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Let the model serve that served before, pinned. Again, it goes further back."""
    serving = _serving(pipeline, config, line)
    with working("bringing up the model that served before"):
        serving.roll_back(why or "")
    _say(serving)


@group.command()
def unpin(
    pipeline: arguments.PipelineName,
    why: Reason = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Let later windows serve again. What serves stays until the next one is published."""
    serving = _serving(pipeline, config, line)
    if not serving.unpin(why or ""):
        note("note: nothing is pinned")
    _say(serving)


def _serving(pipeline: str, config: Path, line: str) -> Serving:
    from forebay.executors.serving.switch import Serving
    from forebay.executors.stages.target import LineTarget

    target = LineTarget.load(config, pipeline, line)
    if not target.chain.windows():
        require_known(target.home, pipeline, config, line)
    return Serving(target.project, target.pipeline, target.chain)


def _say(serving: Serving) -> None:
    for text in serving.words():
        Output(OutputFormat.TEXT).line(text)
    if serving.path.elsewhere:
        note(f"note: {serving.path.elsewhere}")
