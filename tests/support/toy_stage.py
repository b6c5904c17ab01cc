"""A stand-in for the interpreter of stages: answers as it is told, and remembers what it was asked.

`answers.json` lists the answers by stage; the last one is given again and again. An answer may
name a job: then its folder is there afterwards, as a real submission leaves it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.paths import Home
from support.links import link
from support.model_lines import record

SCRIPT = """#!{python}
import fcntl, json, os, sys, time
from pathlib import Path

here = Path(__file__).parent
stage, *arguments = sys.argv[sys.argv.index("stage") + 1:]
home = os.environ["FOREBAY_HOME"]
with (here / "calls.jsonl").open("a") as calls:
    fcntl.flock(calls, fcntl.LOCK_EX)
    calls.write(json.dumps({{"stage": stage, "arguments": arguments, "home": home}}) + "\\n")
answers = json.loads((here / "answers.json").read_text())[stage]
made = [json.loads(line)["stage"] for line in (here / "calls.jsonl").read_text().splitlines()]
answer = answers[min(made.count(stage), len(answers)) - 1]
for line in answer.get("says", []):
    print(line, file=sys.stderr, flush=True)
time.sleep(answer.get("seconds", 0))
for path, content in answer.get("files", {{}}).items():
    target = Path(home, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
if "links" in answer:
    sys.path.insert(0, "{tests}")
    from support.toy_stage import record_links

    record_links(home, answer["links"])
if "prints" in answer:
    print(answer["prints"] if isinstance(answer["prints"], str) else json.dumps(answer["prints"]))
sys.exit(answer.get("code", 0))
"""


@dataclass(frozen=True)
class ToyStage:
    """One stand-in in a folder of its own."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, **answers: list[dict[str, Any]]) -> ToyStage:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "python"
        script.write_text(SCRIPT.format(python=sys.executable, tests=Path(__file__).parents[1]))
        script.chmod(0o755)
        toy = cls(folder)
        toy.answer(**answers)
        return toy

    @property
    def python(self) -> str:
        return str(self.folder / "python")

    def answer(self, **answers: list[dict[str, Any]]) -> None:
        """New answers, from the first on."""
        (self.folder / "answers.json").write_text(json.dumps(answers))
        (self.folder / "calls.jsonl").write_text("")

    def calls(self, stage: str) -> list[list[str]]:
        """Arguments of all calls of a stage."""
        lines = map(json.loads, (self.folder / "calls.jsonl").read_text().splitlines())
        return [call["arguments"] for call in lines if call["stage"] == stage]


def now() -> str:
    return datetime.now(UTC).isoformat()


def trained_link(pipeline: str, key: str) -> tuple[str, dict[str, Any]]:
    """The link that a job of one window leaves, with the pipeline."""
    return pipeline, link(key, {"clicks": 17, "views": 3}, {"clicks": 5}).model_dump(mode="json")


def record_links(home: str, links: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Store what `trained_link` gave."""
    for pipeline, fields in links:
        record(ModelChain(Home(Path(home)), pipeline), Link.model_validate(fields))


def job_files(job_id: str, state: str, key: str, **status: Any) -> dict[str, str]:
    """What a job of one window leaves below FOREBAY_HOME, by path: folder and status."""
    stated = {"job_id": job_id, "state": state, "epoch": 1, "submitted_at": now(), **status}
    request = {
        "job_id": job_id,
        "pipeline_name": "ads",
        "home": "unused",
        "project_root": "unused",
        "pipeline": {},
        "sources": {},
        "windows": [{"key": key, "generation": 1, "start": now(), "end": now()}],
    }
    return {
        f"jobs/{job_id}/job.json": json.dumps(request),
        f"jobs/{job_id}/status.json": json.dumps(stated),
        f"jobs/{job_id}/epoch": "1",
        f"jobs/{job_id}/endpoints/data-0": "here",
    }
