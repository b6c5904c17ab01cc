"""The command line: finds the command, turns every error into one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from forebay import __version__
from forebay.commands.shared.complete import VARIABLE
from forebay.commands.shared.output import INTERRUPTED, option
from forebay.errors import ForebayError, InfrastructureError, UsageError
from forebay.system.output.redaction import filter_output
from forebay.system.output.standard_streams import open_standard_streams
from forebay.system.output.text import fitted, printable

__all__ = ["run"]

# The room below forebay.commands of each command's module. The module has a function of the same
# name, with typer's SETTINGS if it needs any, or a `group` of commands.
COMMANDS = {
    "check": "declare",
    "schema": "declare",
    "explain": "windows",
    "init": "declare",
    "sources": "declare",
    "preview": "declare",
    "plan": "windows",
    "run": "windows",
    "cancel": "state",
    "why": "windows",
    "forget": "windows",
    "gc": "state",
    "score": "models",
    "report": "models",
    "up": "airflow",
    "down": "airflow",
    "status": "airflow",
    "doctor": "airflow",
    "airflow": "airflow",
    "completion": "declare",
    "jobs": "state",
    "home": "state",
    "models": "models",
    "dead": "windows",
    "kafka": "airflow",
    "dags": "declare",
    "stage": "windows",
}

# Their output must be exact: results that a program parses, and a password that is shown once.
EXACT_OUTPUT = frozenset({"stage", "up"})
_CLICK_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
_HELP = """Trains recommendation models on history and on fresh events, together.

Exit codes: 0 done, 1 your YAML, command or installation, 2 data not ready, 3 data bad,
4 infrastructure.
"""


@dataclass
class _Invocation:
    debug: bool = False


class _Commands(TyperGroup):
    """The commands. One is imported when it is called or described, not while Tab completes it."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - as typer declares it
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - as above
        """An unknown one is compared with the names of all."""
        for name in (cmd_name,) if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:  # completion has put names alone there
                self.commands[name] = command_named(name)
        return self.commands.get(cmd_name)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401 - as above
        self.commands.update({name: TyperCommand(name) for name in COMMANDS})
        return super().shell_complete(ctx, incomplete)


@cache
def command_named(name: str) -> Any:  # noqa: ANN401 - as above
    """One of COMMANDS, made once in a process."""
    module = import_module(f"forebay.commands.{COMMANDS[name]}.{name}")
    one = typer.Typer(rich_markup_mode=None)
    if hasattr(module, "group"):
        one.add_typer(module.group, name=name)
    else:
        one.command(name, **getattr(module, "SETTINGS", {}))(getattr(module, name))
    return typer.main.get_group(one).commands[name]


def build_app() -> typer.Typer:
    """The application with all commands."""
    app = typer.Typer(
        name="forebay",
        cls=_Commands,
        help=_HELP,
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    if VARIABLE in os.environ:
        import_module("typer.completion").completion_init()  # which `add_completion` would do
    return app


def _global_options(
    context: typer.Context,
    debug: Annotated[bool, option("--debug", help="Show tracebacks of errors.")] = False,  # noqa: FBT002
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,  # noqa: FBT002
) -> None:
    cast("_Invocation", context.obj).debug = debug
    if version:
        typer.echo(f"forebay {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are lines on standard error."""
    rest = [argument for argument in arguments if argument != "--debug"]  # it may be anywhere
    invocation = _Invocation(debug=len(rest) < len(arguments))
    try:
        command = typer.main.get_command(build_app())
        code = command.main(
            args=["--debug", *rest] if invocation.debug else rest,
            prog_name="forebay",
            standalone_mode=False,
            obj=invocation,
        )
    except _CLICK_USAGE_ERROR as error:
        return _usage(error)
    except (typer.Abort, KeyboardInterrupt):  # the latter before the command is known
        sys.stderr.write("aborted\n")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place that can turn it into a line
        return _failed(error, invocation)
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> int:
    """Report a command line that cannot be parsed: the caller has to change it, so exit code 1."""
    shown = cast("Any", error)
    if type(error).__name__ == "NoArgsIsHelpError":
        shown.show()
        return UsageError.exit_code
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "forebay"
    message = printable(shown.format_message()).removesuffix(".").replace(": Value error, ", ": ")
    _write_error(f"{message} (see `{command} --help`)")
    return UsageError.exit_code


def _failed(error: Exception, invocation: _Invocation) -> int:
    if invocation.debug:
        traceback.print_exception(error)
    text = str(error)
    if not isinstance(error, ForebayError | OSError):
        way_out = "" if invocation.debug else " (--debug shows the traceback)"
        text = f"unexpected {type(error).__name__}: {error}{way_out}"
    _write_error(printable(text))
    return error.exit_code if isinstance(error, ForebayError) else InfrastructureError.exit_code


def _write_error(text: str) -> None:
    sys.stderr.write(fitted(f"error: {text}\n", sys.stderr))


def main() -> None:
    """Entry point of the `forebay` script. Its output never shows secrets."""
    output = open_standard_streams()
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    for name, value in os.environ.items():
        if name.startswith("FOREBAY_") and value.startswith("~/"):  # set by a file, not by a shell
            os.environ[name] = os.path.expanduser(value)  # noqa: PTH111 - a text
    filter_output(stdout=command not in EXACT_OUTPUT)
    code = run(sys.argv[1:])
    output.flush()
    if output.failure is not None:
        _write_error(f"standard output is not complete: {output.failure}")
    sys.exit(code or (InfrastructureError.exit_code if output.failure else 0))


if __name__ == "__main__":
    main()
