"""Where the embedded Airflow keeps its files: everything below FOREBAY_HOME/airflow."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from forebay.home.paths import Home
from forebay.home.privacy import make_home


@dataclass(frozen=True)
class Layout:
    """Paths of one embedded Airflow. Only `create` creates folders."""

    home: Home

    @property
    def root(self) -> Path:
        """What Airflow calls AIRFLOW_HOME. Its absolute path also marks its processes."""
        return self.home.root.absolute() / "airflow"

    @property
    def settings(self) -> Path:
        """Airflow's settings, including secrets."""
        return self.root / "airflow.cfg"

    @property
    def secrets(self) -> Path:
        """Keys that sign tokens and encrypt connections."""
        return self.root / "secrets.json"

    @property
    def passwords(self) -> Path:
        """Password of each user, as Airflow's simple login reads it."""
        return self.root / "passwords.json"

    @property
    def dags(self) -> Path:
        """Generated DAG files: one folder for each configuration folder."""
        return self.root / "dags"

    def stubs(self, config_dir: Path) -> Path:
        """Where the DAG files of one configuration folder go."""
        path = config_dir.absolute()
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        return self.dags / f"{path.name}-{digest}"

    @property
    def logs(self) -> Path:
        """Logs of tasks, as Airflow arranges them, and of the components."""
        return self.root / "logs"

    def log(self, component: str) -> Path:
        """Output of one component."""
        return self.logs / "components" / f"{component}.log"

    @property
    def state(self) -> Path:
        """The state of the components, written by the keeper."""
        return self.root / "endpoint.json"

    @property
    def keeper_lock(self) -> Path:
        """Held by the keeper for its lifetime."""
        return self.root / "keeper.lock"

    @property
    def start_lock(self) -> Path:
        """Held by whoever starts or stops Airflow."""
        return self.root / "start.lock"

    @property
    def database(self) -> Path:
        """The database's own record, and its data if it can be stored here."""
        return self.root / "postgres"

    def create(self) -> None:
        """Create the folders, closed to other users."""
        make_home(self.home)
        self.root.mkdir(mode=0o700, exist_ok=True)
        for path in (self.dags, self.logs, self.log("any").parent, self.database):
            path.mkdir(mode=0o700, exist_ok=True)
