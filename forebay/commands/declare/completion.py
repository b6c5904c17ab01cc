"""`forebay completion SHELL`: lets a shell complete commands, options and names with Tab."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from forebay.commands.shared.complete import VARIABLE
from forebay.commands.shared.output import Output, OutputFormat


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Your shell.", metavar="SHELL")],
) -> None:
    """Print the script that completes words in your shell.

    It completes commands, options, and names of pipelines, sources, windows and jobs. For bash put
    `eval "$(forebay completion bash)"` into ~/.bashrc; for zsh the same with `zsh` into ~/.zshrc,
    after compinit; for fish run
    `forebay completion fish > ~/.config/fish/completions/forebay.fish`.
    """
    typers: Any = import_module("typer.completion")
    script = typers.get_completion_script(
        prog_name="forebay", complete_var=VARIABLE, shell=shell.value
    )
    Output(OutputFormat.TEXT).exact(script)
