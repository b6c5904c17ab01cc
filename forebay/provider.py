"""Forebay's provider metadata for Airflow, with its configuration section. Needs no Airflow."""

from __future__ import annotations

from typing import Any

from forebay import __version__

_LINKS = ("TrainingLink", "MetricsLink", "WindowBeforeLink")


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "forebay",
        "name": "Forebay",
        "description": "Trains recommendation models window by window, on history and on streams.",
        "versions": [__version__],
        "extra-links": [f"forebay.operators.links.{name}" for name in _LINKS],
        "config": {
            "forebay": {
                "description": "Where Forebay finds its state and its interpreters.",
                "options": {
                    "home": {
                        "description": (
                            "Folder with Forebay's state (ledger, models, jobs), as an absolute "
                            "path that is the same for every component. The environment variable "
                            "FOREBAY_HOME takes precedence."
                        ),
                        "version_added": __version__,
                        "type": "string",
                        "example": "/srv/forebay",
                        "default": "",
                    },
                    "python": {
                        "description": (
                            "Interpreter for planning and jobs of pipelines that name none; its "
                            "environment needs forebay[train]. If empty, Airflow's own."
                        ),
                        "version_added": __version__,
                        "type": "string",
                        "example": "/srv/forebay/venv/bin/python",
                        "default": "",
                    },
                },
            }
        },
    }
