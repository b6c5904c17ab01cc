"""Connections of kafka-python that are as secure as declared, or carry no byte of data.

It derives both TLS and SASL from a text that it compares itself, so what it did is looked at. Its
private names are those of the pinned version; without them nothing connects.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Awaitable
from operator import attrgetter
from typing import Any

from forebay.errors import ConfigError

# By protocol: whether there is TLS, and whether there is SASL.
_DECLARED = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}


def checked_client(faults: list[BaseException], **config: Any) -> Any:  # noqa: ANN401 - no types
    """What an option `kafka_client` makes. faults: where it puts why connections failed."""
    from kafka.net.compat import KafkaNetClient
    from kafka.net.selector import NetworkSelector

    net = NetworkSelector(**config)
    manager = _manager_class()(net, **config)
    manager.faults = faults
    return KafkaNetClient(net=net, manager=manager)


def is_refusal(fault: BaseException) -> bool:
    """Whether trying again would fail too: TLS or SASL do not fit the declaration."""
    from kafka import errors

    refusals = (
        *(ConfigError, ssl.SSLError, errors.KafkaConfigurationError),
        *(errors.IllegalSaslStateError, errors.UnsupportedSaslMechanismError),
        errors.SaslAuthenticationFailedError,
    )
    return isinstance(fault, refusals) or isinstance(fault.__context__, refusals)


@functools.cache
def _manager_class() -> type:
    from kafka.net.manager import KafkaConnectionManager

    # Built without a class statement: the base ships no types.
    return type("CheckedManager", (KafkaConnectionManager,), {"_connect": _connect})


def _connect(self: Any, node: Any, conn: Any, **more: Any) -> Awaitable[None]:  # noqa: ANN401
    from kafka.net.manager import KafkaConnectionManager

    made, protocol = conn.connection_made, self.config["security_protocol"]

    def connection_made(transport: Any) -> None:  # noqa: ANN401
        tls = getattr(attrgetter("_sock")(transport), "version", lambda: None)()
        if _DECLARED.get(protocol) != (tls is not None, conn.sasl_enabled):
            raise ConfigError(f"the connection to {node.host} is not {protocol}, as declared")
        made(transport)

    conn.connection_made = connection_made
    conn.init_future.add_errback(self.faults.append)
    found: Awaitable[None] = attrgetter("_connect")(KafkaConnectionManager)(
        self, node, conn, **more
    )
    return found
