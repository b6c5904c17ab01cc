"""An address s3://BUCKET/FOLDER, with ?endpoint_override=HOST:PORT&scheme=http&region=REGION.

The parameters have pyarrow's names. What is not given comes from the usual AWS_* variables and
files; keys and passwords come only from there, so an address can be shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from forebay.errors import ConfigError
from forebay.home.store import STORE_NAME

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?")
_PARAMETERS = ("endpoint_override", "scheme", "region")
_SCHEMES = ("http", "https")


@dataclass(frozen=True)
class S3Address:
    """Where objects are. prefix: of their keys; "", or ending in a slash."""

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None

    def key(self, name: str) -> str:
        """The key of the object with this name below the folder."""
        return self.prefix + name

    def url(self, name: str = "") -> str:
        """The address to show to people."""
        return f"s3://{self.bucket}/{self.prefix}{name}"


def s3_address(url: str) -> S3Address:
    """The parts of an address.

    Raises:
        ConfigError: when it is not valid. Its text is not quoted, since it may contain a password.
    """
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _error("expected an address such as s3://BUCKET/FOLDER") from None
    _require_no_secret(parts)
    bucket, prefix = parts.netloc, unquote(parts.path).strip("/")
    if parts.scheme != "s3" or not _BUCKET.fullmatch(bucket):
        raise _error("expected an address such as s3://BUCKET/FOLDER: correct the bucket")
    if "//" in prefix or parts.fragment:
        raise _error("the folder of s3://BUCKET/FOLDER must not contain // or #")
    values = dict(given)
    if unknown := sorted(set(values) - set(_PARAMETERS)):
        raise _error(f"there is no parameter {unknown[0]!r}, only {', '.join(_PARAMETERS)}")
    return S3Address(
        bucket=bucket,
        prefix=f"{prefix}/" if prefix else "",
        endpoint=_endpoint(values),
        region=values.get("region"),
    )


def _require_no_secret(parts: SplitResult) -> None:
    if "@" in parts.netloc:
        raise _error(
            "it must not contain a user and a password: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY in the environment"
        )


def _endpoint(values: dict[str, str]) -> str | None:
    host, scheme = values.get("endpoint_override"), values.get("scheme", "https")
    if scheme not in _SCHEMES:
        raise _error(f"scheme must be {' or '.join(_SCHEMES)}")
    if host is None:
        if "scheme" in values:
            raise _error("scheme is only valid with endpoint_override=HOST:PORT")
        return None
    if not _HOST.fullmatch(host):
        raise _error("endpoint_override must be HOST or HOST:PORT")
    return f"{scheme}://{host}"


def _error(what: str) -> ConfigError:
    return ConfigError(f"{STORE_NAME}: {what}")
