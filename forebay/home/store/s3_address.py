"""Addresses of S3 servers. Light: what checks a declaration imports no client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from forebay.errors import ConfigError
from forebay.home.store.base import STORE_NAME

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
