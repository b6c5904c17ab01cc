"""What child processes inherit: names, prefixes, and what the lists cover."""

from __future__ import annotations

import pytest

from forebay.home.database.base import DATABASE_NAME
from forebay.system.environment import (
    BASE,
    HOME_DATABASE,
    JAVA,
    PLANNING,
    PROCESS,
    Patterns,
    inherited,
)

SECRETS = (
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("AZURE_CLIENT_SECRET", "KAFKA_PASSWORD", "PGPASSWORD", "FOREBAY_DATABASE", "GITHUB_TOKEN"),
    *("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_STORE", "HTTP_PROXY", "SSH_AUTH_SOCK"),
)
SITE = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH"),
    *("FOREBAY_HOME", "FOREBAY_STORE", "FOREBAY_AIRFLOW", "FOREBAY_TENSORFLOW_STARTS"),
    *("HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "KRB5CCNAME"),
    *("CUDA_VISIBLE_DEVICES", "TF_NUM_INTRAOP_THREADS", "XLA_FLAGS", "OMP_NUM_THREADS"),
    *("ARROW_IO_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX", "LD_PRELOAD"),
)
STORAGES = (
    *("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE", "GOOGLE_CLOUD_PROJECT"),
    *("AZURE_STORAGE_KEY", "PYICEBERG_CATALOG__PROD__URI", "FSSPEC_S3_KEY", "HADOOP_CONF_DIR"),
    *("JAVA_HOME", "CLASSPATH"),
)


def kept(patterns: Patterns, *names: str) -> set[str]:
    return set(inherited(dict.fromkeys(names, "value"), patterns))


def test_names_prefixes_and_an_address_with_a_password_by_its_name_alone() -> None:
    environ = {"A": "1", "AB": "2", "ACME_KEY": "3", "ACME": "4", "a": "5"}
    assert inherited(environ, ["A", "ACME_*"]) == {"A": "1", "ACME_KEY": "3"}
    assert (inherited(environ, ["*"]), inherited(environ, [])) == (environ, {})
    assert DATABASE_NAME in HOME_DATABASE
    assert kept(("*", "FOREBAY_*"), DATABASE_NAME, "FOREBAY_STORE") == {"FOREBAY_STORE"}
    assert kept(HOME_DATABASE, DATABASE_NAME) == {DATABASE_NAME}


@pytest.mark.parametrize("patterns", [BASE, (*BASE, *JAVA)], ids=["PostgreSQL", "Kafka"])
def test_other_peoples_programs_get_no_secret_and_nothing_of_ours(patterns: Patterns) -> None:
    assert kept(patterns, *SECRETS, *STORAGES) <= {"JAVA_HOME"}
    assert "FOREBAY_HOME" not in kept(patterns, *SITE)
    assert {"PATH", "LC_ALL", "TZ", "LD_LIBRARY_PATH"} <= kept(patterns, *SITE)


def test_what_a_site_sets_reaches_every_process_of_ours() -> None:
    assert (kept(PROCESS, *SITE), kept(PROCESS, *SECRETS)) == (set(SITE), {"HTTP_PROXY"})


def test_who_plans_gets_storages_and_the_database_and_nothing_of_airflow() -> None:
    assert kept(PLANNING, *SITE, *STORAGES) == {*SITE, *STORAGES}
    others = {name for name in SECRETS if name.startswith(("AIRFLOW", "KAFKA", "GITHUB", "SSH"))}
    assert kept(PLANNING, *SECRETS) == set(SECRETS) - others
