"""Forebay's errors as Airflow's: those that another attempt may cure are retried, no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from forebay.errors import ForebayError, InfrastructureError
from forebay.system.redaction import redacted


def as_airflow(error: ForebayError) -> AirflowException:
    """The exception that ends an attempt with this error's text, without secrets.

    Broken infrastructure is worth another attempt; YAML, data that is not there and bad data
    are the same the next time.
    """
    if error.exit_code == InfrastructureError.exit_code:
        return AirflowException(redacted(str(error)))
    return AirflowFailException(redacted(str(error)))


@contextmanager
def failing_as_airflow() -> Iterator[None]:
    """Turn Forebay's errors inside the block into Airflow's. Their text ends the task's log."""
    try:
        yield
    except ForebayError as error:
        raise as_airflow(error) from None
