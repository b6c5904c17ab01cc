"""Options that a Kafka client is given, checked first: it does not check them itself.

kafka-python compares words letter for letter and connects in plain text where it knows none, and
waits in vain for a broker where a number is a text. May not import it: declarations are read here.
"""

from __future__ import annotations

import re
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

from forebay.config.specs.base import Spec
from forebay.datatasks.sources.common.contract.option_types import Text
from forebay.errors import ConfigError
from forebay.system.names import shown

_LABEL = r"\w(?:[\w-]{0,61}\w)?"
_ADDRESS = re.compile(rf"(?:\[([^\[\]]+)\]|{_LABEL}(?:\.{_LABEL})*\.?):(\d{{1,5}})", re.ASCII)


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
    try:
        return found is not None and 0 < int(found[2]) < 2**16 and bool(IPv6Address(found[1] or 1))
    except ValueError:
        return False


def _matching(pattern: str, refusal: str) -> AfterValidator:
    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{shown(text)} {refusal}")
        return text

    return AfterValidator(checked)


def _as(description: str) -> Any:  # noqa: ANN401 - as Field
    return Field(default=None, description=description)


Brokers = Annotated[Text, AfterValidator(broker_addresses)]
TopicName = Annotated[
    Text,
    _matching(
        r"(?!\.{1,2}$)[\w.-]{1,249}", "is no topic's name: 1 to 249 letters, digits, '.', _ or -"
    ),
]
_VERSION = _matching(
    r"(0\.1[01]|[1-9]\d?\.\d{1,2})(\.\d{1,2})?",
    'is not a version of Kafka, such as "3.9", from "0.10" on; without it, the brokers are asked',
)
_ANY_CASE = BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)
_Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
_Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM"]
_Text = Text | None
_Number = Annotated[int, Field(ge=1, lt=2**31)] | None


class ClientOptions(Spec):
    """What may be declared; the rest is ours to set, or means nothing to a reader."""

    security_protocol: Annotated[_Protocol, _ANY_CASE] = Field(
        default="PLAINTEXT", description="How brokers are connected to, in any case of letters"
    )
    sasl_mechanism: Annotated[_Mechanism, _ANY_CASE] | None = _as("How SASL proves who connects")
    sasl_plain_username: _Text = _as("User of PLAIN and SCRAM")
    sasl_plain_password: _Text = _as("Password of PLAIN and SCRAM, as ${NAME}")
    sasl_kerberos_service_name: _Text = _as("Service name of GSSAPI; by default kafka")
    sasl_kerberos_domain_name: _Text = _as("Domain of GSSAPI; by default the broker's host")
    ssl_cafile: _Text = _as("Certificates of authorities to trust, instead of the system's")
    ssl_certfile: _Text = _as("The client's certificate")
    ssl_keyfile: _Text = _as("Its private key")
    ssl_password: _Text = _as("Password of the private key, as ${NAME}")
    ssl_crlfile: _Text = _as("Certificates that were revoked")
    ssl_check_hostname: bool | None = _as("Whether a certificate must be for the broker's host")
    client_id: _Text = _as("What brokers call the client in their logs and quotas")
    client_rack: _Text = _as("Rack of the client, for reading from the closest replica")
    api_version: Annotated[Text, _VERSION] | None = _as(
        "The brokers' version, as text; by default they are asked"
    )
    request_timeout_ms: _Number = _as("How long an answer is waited for")
    retry_backoff_ms: _Number = _as("How long before a failed request is sent again")
    reconnect_backoff_ms: _Number = _as("How long before a broker is connected to again")
    reconnect_backoff_max_ms: _Number = _as("The most of that, after several failures")
    connections_max_idle_ms: _Number = _as("How long an unused connection stays open")
    metadata_max_age_ms: _Number = _as("How long the leaders of partitions are remembered")
    fetch_max_wait_ms: _Number = _as("How long a broker may wait for fetch_min_bytes")
    fetch_min_bytes: _Number = _as("Least bytes of an answer with records")
    fetch_max_bytes: _Number = _as("Most bytes of an answer with records")
    max_partition_fetch_bytes: _Number = _as("The same for each partition")
    receive_buffer_bytes: _Number = _as("Size of the socket's buffer for answers")
    send_buffer_bytes: _Number = _as("Size of the socket's buffer for requests")

    @field_validator("*")
    @classmethod
    def _used(cls, value: object, info: ValidationInfo) -> object:
        """An option that the protocol does not use says that another one was meant."""
        layer = str(info.field_name).partition("_")[0].upper()
        using = [each for each in get_args(_Protocol) if layer in each.split("_")]
        protocol = info.data.get("security_protocol")  # none where it is wrong itself
        if value is not None and protocol and using and protocol not in using:
            raise ValueError(
                f"security_protocol is {protocol}, which does not use it: write "
                f"{' or '.join(using)} there, or remove it"
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
        """For kafka-python; ConfigError for a file that cannot be read. root: of relative paths."""
        found = self.model_dump(exclude_none=True)
        for name in [each for each in found if each.endswith("file")]:
            path = root / found[name]
            try:
                path.open("rb").close()
            except OSError as error:
                raise ConfigError(f"options.client.{name}: {error}") from error
            found[name] = str(path)
        if self.api_version is not None:
            found["api_version"] = tuple(map(int, self.api_version.split(".")))
        return found
