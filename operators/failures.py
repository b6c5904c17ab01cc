"""Forebay's errors as Airflow's: only those that another attempt may fix are retried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from forebay.errors import ForebayError, InfrastructureError
from forebay.system.output.redaction import redacted


@contextmanager
def failing_as_airflow() -> Iterator[None]:
    """Turn Forebay's errors inside the block into Airflow's. Their text ends the task's log.

    Infrastructure failures are worth another attempt; wrong YAML, missing data and bad data would
    fail again.
    """
    try:
        yield
    except ForebayError as error:
        again = error.exit_code == InfrastructureError.exit_code
        kind = AirflowException if again else AirflowFailException
        raise kind(redacted(str(error))) from None
