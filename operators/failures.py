"""Forebay's errors as Airflow's: only those that another attempt may fix are retried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.log import mask_secret

from forebay.errors import ForebayError, InfrastructureError
from forebay.system.output.redaction import hidden_values, redacted


def as_airflow(error: ForebayError) -> AirflowException:
    """The exception that ends an attempt with this error's text, without secrets.

    Infrastructure failures are worth another attempt; wrong YAML, missing data and bad data would
    fail again.
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


def mask_secrets() -> None:
    """Make Airflow mask the secrets that this process knows from its environment and from YAML."""
    for value in hidden_values():
        mask_secret(value)
