"""A line of windows with small models and a serving path, without training; and its readers."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.serving.switch import Serving
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.target import LineTarget
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.home.store.open import own_store
from support import model_lines
from support.links import link
from support.projects import ads_pipeline
from support.there import there

FEATURES = {"user": {"type": "string", "input": "user"}}
MODEL = "saved_model.pb"


def serving_line(
    root: Path, path: str | None, days: int = 3, line: str = "main", **publish: Any
) -> Serving:
    """So many trained windows, each with a model; the line continues where an earlier call ended.

    The home is below the root, and so is a relative path.
    """
    declared = ads_pipeline(publish={"serving": path, **publish})
    spec = PipelineSpec.model_validate({"name": "ads", **declared})
    project = Project(root, root / "config", {}, {"ads": spec}, [], {}, {})
    serving = Serving(project, spec, ModelChain(Home(root / "home"), "ads", line))
    for _ in range(days):
        train_next(serving.chain)
    return serving


def train_next(chain: ModelChain) -> str:
    last = chain.last()
    start = last[0].end if last else datetime(2026, 3, 1, tzinfo=UTC)
    parent = (last[0].window, last[0].generation) if last else None
    trained = link(f"{start:%Y-%m-%d}", parent=parent)
    model_lines.record(chain, trained)
    chain.add_file(trained, "saved_model", put_model(chain.home, trained.window))
    return trained.window


def put_model(home: Home, words: str) -> Stored:
    with TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        (model / "variables").mkdir(parents=True)
        (model / "assets").mkdir()
        (model / MODEL).write_text(f"{words}\n" * 2000)
        (model / "variables" / "variables.data").write_text(f"{words}\n" * 5000)
        facts = {"paradigm": words, "columns": FEATURES, "outputs": ["score"]}
        (model / "features.json").write_text(json.dumps(facts))
        return own_store(home).put_tree("models", "model", model)


def publish(serving: Serving, window: str, generation: int = 1) -> str:
    chain = serving.chain
    line = LineTarget(serving.project, serving.pipeline, chain.home, chain.line)
    window_at = serving.pipeline.dataset.grid.parse(window)
    return publish_window(line.at(window_at), generation).reason


def switch_at_random(serving: Serving, seed: int) -> None:
    """One of everything that changes what serves, or tries to."""
    chance = random.Random(seed)
    windows = serving.chain.windows()
    try:
        match chance.choice(["publish", "publish", "serve", "rollback", "unpin"]):
            case "publish":
                publish(serving, train_next(serving.chain))
            case "serve":
                serving.serve(chance.choice(windows[-5:]), f"seed {seed}")
            case "rollback":
                serving.roll_back()
            case _:
                serving.unpin()
    except UsageError:  # nothing to go back to
        serving.path.bring_up()


# Reads a file of a path, by its name; None if it is not there. Lists names below it.
Read = Callable[[str], bytes | None]
Names = Callable[[], list[str]]


def folder_reader(root: Path) -> tuple[Read, Names]:
    def read(name: str) -> bytes | None:
        try:
            return (root / name).read_bytes()
        except FileNotFoundError:
            return None

    def names() -> list[str]:
        found = [each for each in root.iterdir() if each.name.isdecimal()] if root.is_dir() else []
        return [f"{each.name}/{MODEL}" for each in found]

    return read, names


def bucket_reader(client: Any, bucket: str, prefix: str) -> tuple[Read, Names]:
    def read(name: str) -> bytes | None:
        try:
            answer = client.get_object(Bucket=bucket, Key=f"{prefix}/{name}")
        except client.exceptions.NoSuchKey:
            return None
        return bytes(answer["Body"].read())

    def names() -> list[str]:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = [each["Key"] for page in pages for each in page.get("Contents", ())]
        return [key.removeprefix(f"{prefix}/") for key in found]

    return read, names


def wrong_at(read: Read, names: Names) -> Iterator[str]:
    """What a reader would find wrong at one moment; the models are those of `put_model`."""
    content = read("current.json")
    if content is None:
        yield "no current.json"
        return
    current = json.loads(content)
    for name, checksum in current["files"].items():
        found = read(f"{current['integer']}/{name}")
        if found is None or sha256(found).hexdigest() != checksum:
            yield f"current.json names {current['integer']}: {name} is missing or another"
    # As a model server: the highest integer, once its model is there.
    highest = max(int(name.partition("/")[0]) for name in names() if name.endswith(f"/{MODEL}"))
    parts = [read(f"{highest}/{name}") for name in (MODEL, "variables/variables.data")]
    if len({there(part).split(b"\n")[0] for part in parts}) != 1:
        yield f"{highest} is torn"
    if highest < current["integer"]:
        yield f"{highest} is the highest, but current.json names {current['integer']}"


def poll(
    read: Read, names: Names, seconds: float, over: Callable[[], bool]
) -> tuple[int, list[str]]:
    """Look again and again, from the first model on; how often, and what was wrong."""
    looks, wrong, last = 0, list[str](), 0
    while not over():
        if last or read("current.json") is not None:
            looks += 1
            wrong += wrong_at(read, names)
            integer = int(json.loads(there(read("current.json")))["integer"])
            wrong += [f"back from {last} to {integer}"] * (integer < last)
            last = integer
        time.sleep(seconds)
    return looks, wrong
