"""Secrets that Forebay hides are hidden by Airflow too, in anything that writes to a task's log."""

from __future__ import annotations

from airflow.sdk.log import mask_secret

from forebay.system.output.redaction import hidden_values


def mask_secrets() -> None:
    """Make Airflow mask the secrets that this process knows from its environment and from YAML."""
    for value in hidden_values():
        mask_secret(value)
