"""The client of an S3 server: deadlines, bounded retries, and errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from botocore.parsers import ResponseParserError
from s3transfer.exceptions import RetriesExceededError
from urllib3.exceptions import HTTPError

from forebay.errors import ConfigError, DataError, InfrastructureError
from forebay.home.store.base import STORE_NAME
from forebay.home.store.trees import missing

# The parameters have pyarrow's names. What is not given comes from the usual AWS_* variables and
# files; keys and passwords come only from there, so an address can be shown.

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?")
_PARAMETERS = ("endpoint_override", "scheme", "region")
_SCHEMES = ("http", "https")


@dataclass(frozen=True)
class S3Address:
    """Where objects are. prefix: of their keys; "", or ending in a slash. named: what names it."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None
    named: str = STORE_NAME

    def key(self, name: str) -> str:
        return self.prefix + name

    def url(self, name: str = "") -> str:
        """The address to show to people."""
        return f"s3://{self.bucket}/{self.prefix}{name}"


def s3_address(url: str, named: str = STORE_NAME) -> S3Address:
    """The parts of an address. named: the variable or key that it comes from, for errors.

    Raises:
        ConfigError: when it is not valid. Its text is not quoted, since it may contain a password.
    """
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _error(named, "expected an address such as s3://BUCKET/FOLDER") from None
    if "@" in parts.netloc:
        raise _error(
            named,
            "it must not contain a user and a password: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY in the environment",
        )
    bucket, prefix = parts.netloc, unquote(parts.path).strip("/")
    if parts.scheme != "s3" or not _BUCKET.fullmatch(bucket):
        raise _error(named, "expected an address such as s3://BUCKET/FOLDER: correct the bucket")
    if "//" in prefix or parts.fragment:
        raise _error(named, "the folder of s3://BUCKET/FOLDER must not contain // or #")
    values = dict(given)
    if unknown := sorted(set(values) - set(_PARAMETERS)):
        raise _error(named, f"there is no parameter {unknown[0]!r}, only {', '.join(_PARAMETERS)}")
    return S3Address(
        bucket=bucket,
        prefix=f"{prefix}/" if prefix else "",
        endpoint=_endpoint(values, named),
        region=values.get("region"),
        named=named,
    )


def _endpoint(values: dict[str, str], named: str) -> str | None:
    host, scheme = values.get("endpoint_override"), values.get("scheme", "https")
    if scheme not in _SCHEMES:
        raise _error(named, f"scheme must be {' or '.join(_SCHEMES)}")
    if host is None:
        if "scheme" in values:
            raise _error(named, "scheme is only valid with endpoint_override=HOST:PORT")
        return None
    if not _HOST.fullmatch(host):
        raise _error(named, "endpoint_override must be HOST or HOST:PORT")
    return f"{scheme}://{host}"


def _error(named: str, what: str) -> ConfigError:
    return ConfigError(f"{named}: {what}")


CONNECT_SECONDS = 5.0
# Of silence, not of a whole transfer: gigabytes may take longer.
READ_SECONDS = 15.0
ATTEMPTS = 3
REQUESTS_AT_ONCE = 8
# The bytes of an object stopped coming: boto3 itself does not retry these.
CUT_OFF = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError)
_MISSING = frozenset({"404", "NoSuchKey"})
_WAYS_OUT = {
    **dict.fromkeys(("SlowDown", "ServiceUnavailable", "503"), "it is overloaded, run again"),
    "InsufficientCapacity": "free some space and run again",
    "QuotaExceeded": "free some space, or ask for a larger quota, and run again",
    "XMinioStorageFull": "free some space and run again",
    "507": "free some space and run again",
    "EntityTooLarge": "ask for a larger limit",
}
_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source that boto3 reads"


def client_of(address: S3Address) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
    """A client, for any number of threads of this process.

    Raises:
        ConfigError: when the endpoint is not valid.
    """
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=REQUESTS_AT_ONCE + 2,
        user_agent_extra="forebay",
        # Readers verify our own checksums; this also saves one request per download.
        response_checksum_validation="when_required",
    )
    try:
        # A session of its own: the default one is not thread-safe.
        return boto3.session.Session().client(
            "s3", endpoint_url=address.endpoint, region_name=address.region, config=config
        )
    except (ValueError, BotoCoreError) as error:
        raise ConfigError(f"{address.named}, or an AWS_* variable: {error}") from error


@contextmanager
def calling(place: str, named: str = STORE_NAME) -> Iterator[None]:
    """Turn errors of the server, or on the way to it, into our own.

    Raises:
        DataError: when the object is missing.
        InfrastructureError: for everything else.
    """
    try:
        yield
    except ClientError as error:
        raise _refused(place, error, named) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise InfrastructureError(f"{place}: {error}: set {_CREDENTIALS}") from error
    # boto3 leaves urllib3's own error as it is where an object was asked for and refused, and the
    # text of the refusal stops coming.
    except (BotoCoreError, HTTPError, ResponseParserError, RetriesExceededError) as error:
        reason = getattr(error, "last_exception", error)
        raise InfrastructureError(
            f"{place} cannot be reached ({reason}): check the server and the network, or "
            f"correct {named}, and run again"
        ) from error


def refused(
    place: str, code: str, reason: str, named: str = STORE_NAME
) -> DataError | InfrastructureError:
    if code in _MISSING:
        return missing(place)
    ways_out = {"NoSuchBucket": f"create the bucket, or correct {named}", **_WAYS_OUT}
    way_out = ways_out.get(code, "check the server, and run again")
    if code in {"401", "403"} or any(word in code for word in ("Access", "Signature", "Token")):
        way_out = (
            f"correct the keys ({_CREDENTIALS}), or give their user the right to read, write, "
            "list and delete"
        )
    return InfrastructureError(f"{place}: the server refused ({code}: {reason}): {way_out}")


def _refused(place: str, error: ClientError, named: str) -> DataError | InfrastructureError:
    found = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
    code, reason = str(found.get("Code") or status), str(found.get("Message", "no reason"))
    return refused(place, code, reason, named)
