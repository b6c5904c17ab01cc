"""`forebay airflow ARGUMENTS…`: Airflow's own command line, for the Airflow of this home."""

from __future__ import annotations

import os

import typer

from forebay.errors import InfrastructureError
from forebay.home.paths import Home

# Everything after the name is passed to Airflow, including `--help`.
SETTINGS = {
    "context_settings": {
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": list[str](),
    },
    "options_metavar": "ARGUMENTS…",
}


def airflow(context: typer.Context) -> None:
    """Run an Airflow command, such as `dags list`."""
    from forebay.embedded.airflow.cluster import Embedded
    from forebay.embedded.airflow.components import AIRFLOW
    from forebay.embedded.airflow.settings import component_environment
    from forebay.system.extras import require_extra

    require_extra("embedded")
    embedded = Embedded(Home.from_environment())
    state = embedded.state()
    if state is None or state.state != "running":
        raise InfrastructureError(
            f"Airflow is not running for {embedded.home.root}: `forebay up` starts it"
        )
    os.execve(  # noqa: S606 - no shell is wanted
        AIRFLOW[0], [*AIRFLOW, *context.args], component_environment(embedded.layout, "cli")
    )
