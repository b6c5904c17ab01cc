"""Airflow's settings for one machine, and the environment of everything that runs below it."""

from __future__ import annotations

import configparser
import io
import os
from collections.abc import Mapping

from forebay.embedded.layout import Layout
from forebay.embedded.ports import LOOPBACK
from forebay.embedded.secret_files import USER, Secrets
from forebay.home.paths import ENVIRONMENT_NAME
from forebay.system.environment import Patterns, inherited
from forebay.system.processes.parent import JOB_ID_NAME, PARENT_PID_NAME

# Marks the processes of one embedded Airflow: the absolute path of its folder.
MARK_NAME = "FOREBAY_AIRFLOW"
COMPONENT_NAME = "FOREBAY_AIRFLOW_COMPONENT"
PARALLELISM = 8
# A task whose heartbeats stop for this long counts as dead. Heartbeats come every 5 s and go
# through the API server: its restart (20 s) must fit in.
HEARTBEAT_TIMEOUT_SECONDS = 60
# A scheduler or triggerer whose heartbeats (every 5 s) stop for this long counts as dead; the next
# one takes over its tasks at its next check.
COMPONENT_TIMEOUT_SECONDS = 30
LOOK_SECONDS = 15
# Loggers that write every few seconds, or for each request.
_QUIET = ("http.access", "airflow.dag_processing.manager", "airflow.dag_processing.bundles")
# Settings of another Airflow must not reach ours; connections and variables are data.
CONNECTIONS: Patterns = ("AIRFLOW_CONN_*", "AIRFLOW_VAR_*")
_OWN = (JOB_ID_NAME, PARENT_PID_NAME)


def airflow_settings(
    layout: Layout, *, port: int, database: str, keys: Secrets
) -> dict[str, dict[str, str]]:
    """Sections and options that differ from Airflow's defaults.

    `database` is SQLAlchemy's address without a driver, from `://` on.
    """
    url = f"http://{LOOPBACK}:{port}"
    return {
        "core": {
            "dags_folder": str(layout.dags),
            "plugins_folder": str(layout.root / "plugins"),
            "load_examples": "False",
            "executor": "LocalExecutor",
            "parallelism": str(PARALLELISM),
            "fernet_key": keys.fernet,
            "execution_api_server_url": f"{url}/execution/",
            "simple_auth_manager_users": f"{USER}:admin",
            "simple_auth_manager_passwords_file": str(layout.passwords),
            # The default asks a name server, which may be slow or unavailable.
            "hostname_callable": "socket.gethostname",
        },
        "database": {
            "sql_alchemy_conn": f"postgresql+psycopg2{database}",
            "sql_alchemy_conn_async": f"postgresql+asyncpg{database}",
            # The keeper checks, once for all components.
            "check_migrations": "False",
        },
        "api": {
            "host": LOOPBACK,
            "port": str(port),
            "base_url": url,
            "workers": "1",
            "secret_key": keys.session,
        },
        "api_auth": {"jwt_secret": keys.jwt},
        "workers": {
            # The API server answers its first requests slowly on a loaded machine.
            "execution_api_timeout": "60",
            # A task outlives a restart of the API server: it retries for about a minute.
            "execution_api_retries": "12",
            "execution_api_retry_wait_max": "10",
        },
        "scheduler": _scheduler(),
        "triggerer": {"triggerer_health_check_threshold": str(COMPONENT_TIMEOUT_SECONDS)},
        "dag_processor": {
            # New files are listed every few seconds. A changed file is parsed immediately, an
            # unchanged one only now and then, since it costs 0.2 s of a core.
            "refresh_interval": "3",
            "bundle_refresh_check_interval": "3",
            "min_file_process_interval": "600",
            "parsing_processes": "1",
            "print_stats_interval": "0",
        },
        "logging": {
            "base_log_folder": str(layout.logs),
            "dag_processor_child_process_log_directory": str(layout.logs / "dag_processor"),
            "colored_console_log": "False",
            "uvicorn_logging_level": "WARNING",
            "namespace_levels": " ".join(f"{name}=WARNING" for name in _QUIET),
        },
    }


def _scheduler() -> dict[str, str]:
    return {
        "scheduler_idle_sleep_time": "0.5",
        "scheduler_health_check_threshold": str(COMPONENT_TIMEOUT_SECONDS),
        "orphaned_tasks_check_interval": str(LOOK_SECONDS),
        "task_instance_heartbeat_timeout": str(HEARTBEAT_TIMEOUT_SECONDS),
        "task_instance_heartbeat_timeout_detection_interval": "5",
        "create_cron_data_intervals": "True",
    }


def render(settings: Mapping[str, Mapping[str, str]]) -> str:
    """Settings as the text of Airflow's configuration file."""
    parser = configparser.ConfigParser(interpolation=None)
    for section, options in settings.items():
        # Airflow reads % as the start of a reference.
        parser[section] = {key: value.replace("%", "%%") for key, value in options.items()}
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def component_environment(
    layout: Layout, component: str, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a component and the tasks below it, made from `base`, else from ours.

    The name of the component marks the process and all below it.
    """
    given = os.environ if base is None else base
    others = {
        name: value
        for name, value in given.items()
        if not name.startswith("AIRFLOW") and name not in _OWN
    }
    kept = {**others, **inherited(given, CONNECTIONS)}
    local = ",".join(filter(None, (given.get("NO_PROXY", given.get("no_proxy")), LOOPBACK)))
    return {
        **kept,
        "AIRFLOW_HOME": str(layout.root),
        "AIRFLOW_CONFIG": str(layout.settings),
        ENVIRONMENT_NAME: str(layout.home.root.absolute()),
        MARK_NAME: str(layout.root),
        COMPONENT_NAME: component,
        # Process titles must not overwrite the environment, by which processes are found.
        "SPT_NOENV": "1",
        # Tasks talk to this machine's API server, never through a proxy.
        "NO_PROXY": local,
        "no_proxy": local,
    }
