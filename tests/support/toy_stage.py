"""A stand-in for the interpreter of stages: gives scripted answers, and records its calls.

`answers.json` lists the answers by stage; the last one is given again and again. An answer may
name a job: then it is stored afterwards, as a real submission leaves it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.python_code import TESTS

SCRIPT = """#!{python}
import fcntl, json, os, sys, time
from pathlib import Path

here = Path(__file__).parent
if "forebay.stages" in sys.argv:  # it forks for each call
    from forebay.system.processes.fork_server import serve

    def run(words):
        sys.argv = ["forebay", *words]
        exec(Path(__file__).read_text(), {{"__file__": __file__}})

    serve(Path(sys.argv[-1]), run, 5)
    sys.exit()
stage, *arguments = sys.argv[sys.argv.index("stage") + 1:]
home = os.environ["FOREBAY_HOME"]
with (here / "calls.jsonl").open("a") as calls:
    fcntl.flock(calls, fcntl.LOCK_EX)
    call = {{"stage": stage, "arguments": arguments, "home": home, "environ": dict(os.environ)}}
    calls.write(json.dumps(call) + "\\n")
answers = json.loads((here / "answers.json").read_text())[stage]
made = [json.loads(line)["stage"] for line in (here / "calls.jsonl").read_text().splitlines()]
answer = answers[min(made.count(stage), len(answers)) - 1]
for line in answer.get("says", []):
    print(line, file=sys.stderr, flush=True)
time.sleep(answer.get("seconds", 0))
if "job" in answer:
    sys.path.insert(0, {tests!r})
    from forebay.home.paths import Home
    from support.jobs import request, store_job

    job = answer["job"]
    made = request(Home(Path(home)), job["job_id"], {{job["key"]: 1}}, job["pipeline"])
    store_job(made, job["state"])
    if job["state"] == "succeeded":
        from forebay.executors.model_line.chain import ModelChain
        from support.links import link
        from support.model_lines import record

        counts = ({{"clicks": 12, "views": 3}},)
        record(ModelChain(Home(Path(home)), job["pipeline"]), link(job["key"], *counts))
for path, content in answer.get("files", {{}}).items():
    target = Path(home, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
if "prints" in answer:
    print(answer["prints"] if isinstance(answer["prints"], str) else json.dumps(answer["prints"]))
sys.exit(answer.get("code", 0))
"""


@dataclass(frozen=True)
class ToyStage:
    folder: Path

    @classmethod
    def make(cls, folder: Path, **answers: list[dict[str, Any]]) -> ToyStage:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "python"
        script.write_text(SCRIPT.format(python=sys.executable, tests=str(TESTS)))
        script.chmod(0o755)
        toy = cls(folder)
        toy.answer(**answers)
        return toy

    @property
    def python(self) -> str:
        return str(self.folder / "python")

    def answer(self, **answers: list[dict[str, Any]]) -> None:
        (self.folder / "answers.json").write_text(json.dumps(answers))
        (self.folder / "calls.jsonl").write_text("")

    def calls(self, stage: str) -> list[list[str]]:
        lines = map(json.loads, (self.folder / "calls.jsonl").read_text().splitlines())
        return [call["arguments"] for call in lines if call["stage"] == stage]


def job_of(job_id: str, state: str, pipeline: str, key: str) -> dict[str, Any]:
    """What an answer leaves of a job of one window: its row, its files and its link."""
    job = {"job_id": job_id, "state": state, "pipeline": pipeline, "key": key}
    return {"job": job, "files": {f"jobs/{job_id}/endpoints/data-0": "here"}}
