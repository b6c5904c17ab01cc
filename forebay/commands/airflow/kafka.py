"""`forebay kafka start|stop|status|topic`: one real broker below FOREBAY_HOME."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, option
from forebay.commands.shared.own_home import closed_home
from forebay.errors import InfrastructureError
from forebay.home.paths import Home
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.embedded.kafka.broker import Broker, BrokerStatus

group = typer.Typer(help="A real Kafka broker (one node) on this machine.", no_args_is_help=True)


@group.command()
def start(output: Form = OutputFormat.TEXT) -> None:
    """Start the broker and wait until it serves.

    A broker that is already running is kept.

    With KAFKA_BOOTSTRAP=host:port no broker is started; that one is checked.
    """
    from forebay.embedded.kafka.broker import BOOTSTRAP_NAME

    if not os.environ.get(BOOTSTRAP_NAME):  # otherwise nothing is written to this home
        closed_home()
    with working("starting the broker"):
        found = _broker().start()
    _show(found, output)


@group.command()
def stop(output: Form = OutputFormat.TEXT) -> None:
    """Stop the broker. Its topics and records stay."""
    broker = _broker()
    with working("stopping the broker"):
        stopped = broker.stop()
    shown = Output(output)
    if shown.is_json:
        shown.json({"stopped": stopped, **asdict(broker.status())})
    else:
        shown.line("stopped" if stopped else "no broker of this FOREBAY_HOME was running")


@group.command()
def status(output: Form = OutputFormat.TEXT) -> None:
    """Say whether a broker runs, and where."""
    _show(_broker().status(), output)


@group.command()
def topic(
    name: Annotated[str, typer.Argument(help="The topic's name.", metavar="NAME")],
    partitions: Annotated[
        int, option("--partitions", help="Partitions of a new topic.", min=1, max=10_000)
    ] = 1,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Create a topic, or show one that exists.

    A new topic keeps every record.
    """
    from forebay.datatasks.sources.kafka.client import Cluster
    from forebay.datatasks.sources.kafka.producer import KEEP_ALL

    broker = _broker().status()
    if not broker.running:
        raise InfrastructureError("no broker is running: `forebay kafka start` starts one")
    with Cluster(broker.bootstrap) as cluster:
        found, created = cluster.topic(name), False
        if found is None:
            created = cluster.create_topic(name, partitions, KEEP_ALL)
            found = cluster.topic(name)
    if found is None:
        raise InfrastructureError(f"topic {name} at {broker.bootstrap} was removed meanwhile")
    count = len(found.partitions)
    facts = {"topic": name, "partitions": count, "created": created}
    printed = Output(output)
    if printed.is_json:
        printed.json({"bootstrap": broker.bootstrap, **facts})
    else:
        done = "created" if created else "exists"
        printed.line(f"topic {name} {done} at {broker.bootstrap}: {counted(count, 'partition')}")


def _broker() -> Broker:
    from forebay.embedded.kafka.broker import Broker

    return Broker(Home.from_environment())


def _show(found: BrokerStatus, output: OutputFormat) -> None:
    shown = Output(output)
    if shown.is_json:
        shown.json(asdict(found))
    elif not found.running:
        where = f" at {found.bootstrap}" if found.bootstrap else ""
        shown.line(f"no broker is running{where}")
    elif found.own:
        shown.line(f"Kafka serves at {found.bootstrap} (pid {found.pid}, log {found.log})")
    else:
        shown.line(f"Kafka serves at {found.bootstrap} (KAFKA_BOOTSTRAP)")
