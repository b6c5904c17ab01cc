"""Options that a Kafka client is given, checked first: it does not check them itself.

kafka-python compares words letter for letter and connects in plain text where it knows none, and
waits in vain for a broker where a number is a text. May not import it: declarations are read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv6Address
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from forebay.config.base import Spec
from forebay.datatasks.sources.common.option_types import Text
from forebay.errors import ConfigError
from forebay.system.names import shown

_ADDRESS = re.compile(r"(\[[^\[\]]+\]|[A-Za-z0-9_](?:[\w.-]{0,251}\w)?\.?):(\d{1,5})", re.ASCII)
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_VERSION = re.compile(r"(?:0\.1[01]|[1-9]\d?\.\d{1,2})(?:\.\d{1,2})?")
_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile")
# The same options, by the names of librdkafka.
CONFLUENT_NAMES: Mapping[str, str] = {
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
    **{
        name: name.replace("_", ".")
        for name in ("security_protocol", "sasl_mechanism", "client_id", "client_rack")
    },
}


def broker_addresses(text: str) -> str:
    """Addresses of brokers without spaces; a ValueError says which one is none."""
    addresses = [each.strip() for each in text.split(",")]
    for address in addresses:
        if not _is_address(address):
            raise ValueError(
                f"{shown(address)} is not host:port, such as broker.example.org:9092 or "
                "[::1]:9092 (several: separated by commas; the port: 1 to 65535)"
            )
    return ",".join(addresses)


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 65535 or ".." in found[1]:
        return False
    try:
        return not found[1].startswith("[") or bool(IPv6Address(found[1][1:-1]))
    except ValueError:
        return False


def _topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError(f"{shown(text)} is no topic's name: 1 to 249 letters, digits, '.', _ or -")
    return text


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError(
            f'{shown(text)} is not a version of Kafka, such as "3.9", from "0.10" on; without '
            "api_version, the broker says which one it has"
        )
    return text


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Brokers = Annotated[Text, AfterValidator(broker_addresses)]
TopicName = Annotated[Text, AfterValidator(_topic)]
_Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
_PROTOCOLS = get_args(_Protocol)
_Mechanism = Annotated[
    Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM"],
    BeforeValidator(_upper),
]


def _text(description: str) -> Any:  # noqa: ANN401 - as Field
    return Field(default=None, description=description)


def _number(description: str) -> Any:  # noqa: ANN401 - as Field
    return Field(default=None, ge=1, lt=2**31, description=description)


class ClientOptions(Spec):
    """What may be declared; the rest is ours to set, or means nothing to a reader."""

    security_protocol: Annotated[_Protocol, BeforeValidator(_upper)] = Field(
        default="PLAINTEXT", description="How brokers are connected to, in any case of letters"
    )
    sasl_mechanism: _Mechanism | None = _text("How SASL proves who is connected")
    sasl_plain_username: Text | None = _text("User of PLAIN and SCRAM")
    sasl_plain_password: Text | None = _text("Password of PLAIN and SCRAM, as ${NAME}")
    sasl_kerberos_service_name: Text | None = _text("Service name of GSSAPI; by default kafka")
    sasl_kerberos_domain_name: Text | None = _text("Domain of GSSAPI; by default the broker's host")
    ssl_cafile: Text | None = _text("Certificates of authorities to trust, instead of the system's")
    ssl_certfile: Text | None = _text("The client's certificate")
    ssl_keyfile: Text | None = _text("Its private key")
    ssl_password: Text | None = _text("Password of the private key, as ${NAME}")
    ssl_crlfile: Text | None = _text("Certificates that were revoked")
    ssl_check_hostname: bool | None = _text("Whether a certificate must be for the broker's host")
    client_id: Text | None = _text("What brokers call the client in their logs and quotas")
    client_rack: Text | None = _text("Rack of the client, for reading from the closest replica")
    api_version: Annotated[Text, AfterValidator(_version)] | None = _text(
        "The brokers' version, as text; by default they are asked"
    )
    request_timeout_ms: int | None = _number("How long an answer is waited for")
    retry_backoff_ms: int | None = _number("How long before a failed request is sent again")
    reconnect_backoff_ms: int | None = _number("How long before a broker is connected to again")
    reconnect_backoff_max_ms: int | None = _number("The most of that, after several failures")
    connections_max_idle_ms: int | None = _number("How long an unused connection stays open")
    metadata_max_age_ms: int | None = _number("How long the leaders of partitions are remembered")
    fetch_max_wait_ms: int | None = _number("How long a broker may wait for fetch_min_bytes")
    fetch_min_bytes: int | None = _number("Least bytes of an answer with records")
    fetch_max_bytes: int | None = _number("Most bytes of an answer with records")
    max_partition_fetch_bytes: int | None = _number("The same for each partition")
    receive_buffer_bytes: int | None = _number("Size of the socket's buffer for answers")
    send_buffer_bytes: int | None = _number("Size of the socket's buffer for requests")

    @field_validator("*")
    @classmethod
    def _used(cls, value: object, info: ValidationInfo) -> object:
        """An option that the protocol does not use says that another one was meant."""
        name = info.field_name or ""
        protocol = info.data.get("security_protocol", name.upper())
        layer = name.partition("_")[0].upper()
        if value is not None and layer in {"SASL", "SSL"} and layer not in protocol.split("_"):
            using = " or ".join(each for each in _PROTOCOLS if layer in each.split("_"))
            raise ValueError(
                f"security_protocol is {protocol}, which does not use it: write {using} there, or "
                "remove it"
            )
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = ["sasl_mechanism"] if self.security_protocol.startswith("SASL") else []
        if self.sasl_mechanism not in {None, "GSSAPI", "AWS_MSK_IAM"}:
            needed += ["sasl_plain_username", "sasl_plain_password"]
        needed += ["ssl_certfile"] if self.ssl_keyfile or self.ssl_password else []
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f"{' and '.join(missing)} must be set too")
        return self

    def settings(self, root: Path) -> dict[str, Any]:
        """What kafka-python is given. root: where relative paths start.

        Raises:
            ConfigError: for a file that cannot be read.
        """
        found = self.model_dump(exclude_none=True)
        for name in _FILES & found.keys():
            path = root / found[name]
            try:
                path.open("rb").close()
            except OSError as error:
                raise ConfigError(f"options.client.{name}: {error}") from error
            found[name] = str(path)
        if self.api_version is not None:
            found["api_version"] = tuple(map(int, self.api_version.split(".")))
        return found
