"""Kafka's jars: exactly the files that Forebay was tested with, wherever they were fetched from.

`jars.sha256` lists them as `sha256sum` prints them. Whoever changes pom.xml regenerates it, from
jars that were fetched on two machines: `sha256sum *.jar > jars.sha256` in the folder of the jars.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from forebay.errors import InfrastructureError

SUMS = Path(__file__).with_name("jars.sha256")


def expected_sums() -> dict[str, str]:
    """SHA-256 of each jar by its name, as hexadecimal digits."""
    lines = (line.split() for line in SUMS.read_text().splitlines())
    return {name: digest for digest, name in lines}


def verify_jars(folder: Path, way_out: str) -> None:
    """Refuse a folder in which a jar is missing, or differs from the one that is known.

    Args:
        folder: with the jars.
        way_out: what a person can then do, as a sentence.

    Raises:
        InfrastructureError: naming the jar, and the sums that were expected and found.
    """
    for name, expected in expected_sums().items():
        path = folder / name
        if not path.is_file():
            raise InfrastructureError(f"Kafka's jar {path} is missing. {way_out}")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != expected:
            raise InfrastructureError(
                f"Kafka's jar {path} is not the file that Forebay expects: its SHA-256 is {found} "
                f"instead of {expected}. It is not run. {way_out}"
            )


def class_path(folder: Path) -> str:
    """For Java's option `-cp`: only the known jars, whatever else is in the folder."""
    return ":".join(str(folder / name) for name in expected_sums())
