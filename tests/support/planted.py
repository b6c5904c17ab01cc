"""Variables as a site sets them, planted to see which processes inherit them."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

# Secrets that one kind of process needs, or none.
STORAGE_KEY, CONNECTION = "AWS_SECRET_ACCESS_KEY", "AIRFLOW_CONN_PLANTED"
DECLARED, UNKNOWN = "PLANTED_TOKEN", "OTHERS_TOKEN"
# What every process of Forebay may need, and no other program.
CERTIFICATES = "SSL_CERT_DIR"
PLANTED = {
    STORAGE_KEY: "planted-key",
    CONNECTION: "aws://planted",
    DECLARED: "planted-token",
    UNKNOWN: "planted-elsewhere",
    CERTIFICATES: "/etc/ssl/certs",
}


def planted_in(processes: Iterable[psutil.Process]) -> list[set[str]]:
    found = []
    for process in processes:
        environ = process.environ()
        found.append({name for name, value in PLANTED.items() if environ.get(name) == value})
    return found
