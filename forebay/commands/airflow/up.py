"""`forebay up`: Airflow on this machine, with a DAG for every pipeline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import LiveLine, working
from forebay.commands.shared.output import Form, Output, OutputFormat, is_terminal, note, option
from forebay.commands.shared.own_home import closed_home
from forebay.errors import InfrastructureError, UsageError
from forebay.home.database.format import open_home

if TYPE_CHECKING:
    from forebay.embedded.layout import Layout


def up(
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    new_password: Annotated[
        bool, option("--new-password", help="Set a new password for the user and show it.")
    ] = False,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Start Airflow and its database, or find them running.

    They run until `forebay down`. Every pipeline in the configuration folder becomes a DAG,
    including those added later. Airflow pauses new DAGs.
    """
    from forebay.embedded.airflow.cluster import Embedded
    from forebay.embedded.secret_files import new_password as make_password

    if not config.is_dir():
        raise UsageError(f"{config} is not a folder: give the one with pipelines/ as --config")
    embedded = Embedded(closed_home(open_home()), [config])
    before = embedded.state()
    was_running = before is not None and not before.over
    if not was_running:
        _refuse_unfit_machine(embedded.layout)
    began = time.monotonic()
    first = not embedded.layout.passwords.exists()
    if new_password and not first:
        make_password(embedded.layout)
    try:
        with working("starting Airflow and its database") as line:
            endpoint = embedded.start(progress=lambda part: _tell(line, part))
    except BaseException:
        if first:  # nobody has seen the password: the next start shows a new one
            embedded.layout.passwords.unlink(missing_ok=True)
        raise
    state = embedded.state()
    facts: dict[str, Any] = {
        "url": endpoint.url,
        "user": endpoint.user,
        "password": endpoint.password if first or new_password else None,
        "password_file": embedded.layout.passwords,
        "started": not was_running,
        "seconds": round(time.monotonic() - began, 1),
        "config": config.absolute(),
        "logs": embedded.layout.log("any").parent,
        "sync_error": state.sync_error if state is not None else None,
        "failed": [one.name for one in embedded.status() if one.state == "failed"],
    }
    _print(Output(output), facts)


def _tell(line: LiveLine, part: str) -> None:
    if part:
        line.doing(f"starting: {part}")


def _refuse_unfit_machine(layout: Layout) -> None:
    from forebay.embedded.checks import essential_checks

    failed = [check for check in essential_checks(layout) if check.state == "failure"]
    if failed:
        lines = [f"{check.name}: {check.found}: {check.remedy}" for check in failed]
        raise InfrastructureError("this machine is not ready: " + "; ".join(lines))


def _print(shown: Output, facts: dict[str, Any]) -> None:
    if facts["sync_error"]:
        note(f"warning: {facts['sync_error']}")
    if facts["failed"]:
        names = ", ".join(facts["failed"])
        note(
            f"warning: {names} died too often: see {facts['logs']}, then run `forebay down` and "
            "`forebay up`"
        )
    if shown.is_json:
        shown.json(facts)
        return
    already = "" if facts["started"] else " already"
    shown.line(f"Airflow is{already} running at {facts['url']}")
    if facts["password"]:
        shown.line(f"user {facts['user']}, password {facts['password']} (shown this once)")
    else:
        shown.line(
            f"user {facts['user']}, password in {facts['password_file']} "
            "(`forebay up --new-password` makes a new one)"
        )
    shown.line("new DAGs are paused: `forebay airflow dags unpause DAG` makes one run")
    if is_terminal():
        shown.line("`forebay status` shows its state, `forebay down` stops it")
