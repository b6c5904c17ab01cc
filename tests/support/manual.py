"""docs/cli.md: every command with its arguments and options, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from forebay.cli import build_app

# Of the library inside typer, which has no public name for them.
Command = Any
Parameter = Any
BAR = "\\|"
HEAD = """# Reference: the command line

Generated from the commands by `make pages`. Every option but `--version` can also be set by the
environment variable beside it. `forebay --debug COMMAND` shows the full traceback of an error.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | change your YAML or the command |
| 2 | the data is not ready |
| 3 | the data is bad |
| 4 | infrastructure failed: the same command can be run again |
"""


def manual_page() -> str:
    root = typer.main.get_command(build_app())
    context = typer.Context(root, info_name="forebay")
    parts = [HEAD, "## Options before the command\n", _options(root, context)]
    for command, inside in commands(root, context):
        text = (command.help or "").replace("\f", "").strip()
        parts += [f"## `{inside.command_path}`\n", f"{text}\n", _usage(command, inside)]
        parts.append(_options(command, inside))
    return "\n".join(part for part in parts if part)


def commands(group: Command, context: typer.Context) -> Iterator[tuple[Command, typer.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inside = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from commands(command, inside)
        else:
            yield command, inside


def _usage(command: Command, context: typer.Context) -> str:
    pieces = " ".join(command.collect_usage_pieces(context))
    return f"```text\n{context.command_path} {pieces}\n```\n"


def _options(command: Command, context: typer.Context) -> str:
    rows = [_option(each, context) for each in command.params if not getattr(each, "hidden", False)]
    if not rows:
        return ""
    return "| option | meaning | default | variable |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _option(parameter: Parameter, context: typer.Context) -> str:
    names, text = parameter.get_help_record(context)
    meaning, _, rest = text.partition("  [")
    facts = dict(each.partition(": ")[::2] for each in rest.removesuffix("]").split("; ") if each)
    default = "**required**" if "required" in facts else _code(facts.get("default", ""))
    variable = _code(facts.get("env var", ""))
    return f"| {_code(names)} | {meaning.replace('|', BAR)} | {default} | {variable} |"


def _code(text: str) -> str:
    return f"`{text.replace('|', BAR)}`" if text else ""
