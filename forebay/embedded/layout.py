"""Where the embedded Airflow keeps its files: everything below FOREBAY_HOME/airflow."""

from __future__ import annotations

import hashlib
from pathlib import Path

from forebay.home.paths import Home
from forebay.home.privacy import make_home


class Layout:
    """Paths of one embedded Airflow. Only `create` creates folders.

    root: what Airflow calls AIRFLOW_HOME; its absolute path also marks its processes.
    settings: Airflow's, including secrets. secrets: keys that sign tokens and encrypt connections.
    passwords: by user, as Airflow's simple login reads them.
    dags: generated DAG files, one folder for each configuration folder.
    logs: of tasks, as Airflow arranges them, and of the components.
    state: of the components, written by the keeper. keeper_lock: held by it for its lifetime.
    start_lock: held by whoever starts or stops Airflow.
    database: its own record, and its data if that can be stored here.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self.root = home.root.absolute() / "airflow"
        self.settings = self.root / "airflow.cfg"
        self.secrets = self.root / "secrets.json"
        self.passwords = self.root / "passwords.json"
        self.dags = self.root / "dags"
        self.logs = self.root / "logs"
        self.state = self.root / "endpoint.json"
        self.keeper_lock = self.root / "keeper.lock"
        self.start_lock = self.root / "start.lock"
        self.database = self.root / "postgres"

    def stubs(self, config_dir: Path) -> Path:
        """Where the DAG files of one configuration folder go."""
        path = config_dir.absolute()
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        return self.dags / f"{path.name}-{digest}"

    def followed(self, config_dir: Path) -> Path:
        """Which pipelines of a configuration folder are followed."""
        return self.stubs(config_dir).with_suffix(".json")

    def log(self, component: str) -> Path:
        return self.logs / "components" / f"{component}.log"

    def create(self) -> None:
        """Create the folders, closed to other users."""
        make_home(self.home)
        self.root.mkdir(mode=0o700, exist_ok=True)
        for path in (self.dags, self.logs, self.log("any").parent, self.database):
            path.mkdir(mode=0o700, exist_ok=True)
