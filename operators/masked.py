"""What Forebay hides is hidden by Airflow too: in logs of tasks, whoever writes them."""

from __future__ import annotations

from airflow.sdk.log import mask_secret

from forebay.system.redaction import hidden_values


def mask_secrets() -> None:
    """Let Airflow hide what this process was told to hide: by its environment, and by YAML."""
    for value in hidden_values():
        mask_secret(value)
