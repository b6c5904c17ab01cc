"""A small project that can be changed before it is checked."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from forebay.config.load import load_project
from forebay.config.yaml.problems import Problem
from support import declarations
from support.declarations import dump

COLUMNS = {**declarations.COLUMNS, "seen": "list<int>", "vector": "list<float>"}
SOURCES: dict[str, dict[str, Any]] = {
    "history": {"kind": "parquet", "options": {"path": "data"}, "event_time": "at"},
    "clicks": {"kind": "kafka", "options": {"bootstrap": "localhost:9092", "topic": "clicks"}},
}
for _source in SOURCES.values():
    _source["columns"] = COLUMNS
PIPELINE: dict[str, Any] = {
    "dataset": {
        "start": "2026-03-01",
        "event_id": "event",
        "label": {"column": "clicked"},
        "streams": {"old": {"sources": ["history"]}, "new": {"sources": ["clicks"]}},
        "features": {"user": {"encode": "hash", "buckets": 100}},
    }
}


class Declared:
    def __init__(self, root: Path) -> None:
        self.config = root / "config"
        self.sources = copy.deepcopy(SOURCES)
        self.pipeline = copy.deepcopy(PIPELINE)
        self.dataset = self.pipeline["dataset"]

    def problems(self) -> list[Problem]:
        for folder, files in (("sources", self.sources), ("pipelines", {"ads": self.pipeline})):
            (self.config / folder).mkdir(parents=True, exist_ok=True)
            for name, value in files.items():
                (self.config / folder / f"{name}.yaml").write_text(dump(value))
        return load_project(self.config, {}).problems

    def only(self) -> tuple[str, str, str]:
        """Code, hint and the line's text of the one problem."""
        problems = self.problems()
        assert len(problems) == 1, problems
        line = Path(problems[0].file).read_text().splitlines()[problems[0].line - 1]
        return problems[0].code, problems[0].hint, line.strip()

    def message(self) -> str:
        (problem,) = self.problems()
        return problem.message
