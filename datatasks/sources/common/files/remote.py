"""File systems behind URLs, through fsspec: none waits for ever, and all fail with our errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from forebay.errors import (
    ConfigError,
    DataError,
    ForebayError,
    InfrastructureError,
    MissingExtraError,
)
from forebay.system.extras import require_extra

# The client of s3fs alone would wait for a minute, five times. As of the store in a bucket.
_S3_CLIENT: Mapping[str, Any] = {
    "connect_timeout": 5,
    "read_timeout": 15,
    "retries": {"mode": "standard", "total_max_attempts": 3},
}
_NO_PLACE = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG})
_S3 = ("s3://", "s3a://")


def file_system(place: str, folder: str, storage: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of an URL, and what it calls the folder. Nothing is connected yet.

    folder: its part without a pattern. storage: further options, by the names of its class.

    Raises:
        MissingExtraError: when the extra `s3`, or the package of another scheme, is not installed.
        ConfigError: when nobody knows the scheme, or the options are none of it.
    """
    import fsspec

    options = dict(storage)
    if place.startswith(_S3):
        require_extra("s3")
        options["config_kwargs"] = _S3_CLIENT
    try:
        system, path = fsspec.core.url_to_fs(folder, **options)
    except ImportError as error:
        raise MissingExtraError(f"{place}: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{place}: {error} (correct it, or install its package)") from error
    except TypeError as error:
        raise _unusable(place, error) from error
    if place.startswith(_S3) and not path:
        raise ConfigError(f"{place}: it names no bucket")
    return system, path


@contextmanager
def answering(place: str) -> Iterator[None]:
    """Turn what a storage system raises while it is asked for names into our error.

    Raises:
        ConfigError: when its client does not take its options, which it reads when it connects.
        DataError: when links or files on the way say that no folder is there.
        InfrastructureError: when it does not answer, or refuses.
    """
    try:
        yield
    except ForebayError:
        raise
    except TypeError as error:
        raise _unusable(place, error) from error
    except Exception as error:  # clients have trees of errors of their own
        if isinstance(error, OSError) and error.errno in _NO_PLACE:
            raise DataError(f"{place}: {error} (correct `path`, or remove the link)") from error
        no_keys = type(error).__name__ in {"NoCredentialsError", "PartialCredentialsError"}
        way_out = ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" if no_keys else ""
        raise InfrastructureError(f"{place}: {error}{way_out}") from error


def _unusable(place: str, error: TypeError) -> ConfigError:
    return ConfigError(f"{place}: options.storage cannot be used: {error}")
