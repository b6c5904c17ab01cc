"""What serves is minutes behind the stream, not a window: models of windows that go on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.growing import BEGIN, HOUR, Following, following, links_of, publishing, require_exact
from support.there import eventually, there

from forebay.executors.job.submit import attach
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.home.store.open import store_of

SECOND = "2026-03-02T02"


def serving_often(root: Path) -> Following:
    """Two hours of the clock, of twelve seconds each; exports from the second one on."""
    publish = {"every": "1s", "serving": "exports"}
    followed = following(root, BEGIN + HOUR / 2, 300.0, plane="inline", publish=publish)
    followed.project.pipeline["model"] = {"kind": "towers"}
    return followed


def chain_of(followed: Following) -> ModelChain:
    return ModelChain(Home(followed.project.home), "ads")


@contextmanager
def watching(followed: Following) -> Iterator[list[dict[str, Any]]]:
    """Each `current.json` that was seen at the serving path."""
    seen, over = list[dict[str, Any]](), threading.Event()
    path = followed.project.root / "exports" / "current.json"

    def look() -> None:
        while not over.wait(0.05):
            if path.exists():
                current = json.loads(path.read_text())
                if seen[-1:] != [current]:
                    seen.append(current)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        time.sleep(0.2)
        over.set()
        thread.join()


def test_a_window_that_goes_on_serves_what_it_has_learnt(tmp_path: Path) -> None:
    followed = serving_often(tmp_path)
    with watching(followed) as seen, publishing(followed, 3):
        followed.project.forebay("run", "ads", "--follow")
    require_exact(followed, 3)
    inside = [each["step"] for each in seen if each["window"] == SECOND and each["step"]]
    assert len(inside) > 1
    assert inside == sorted(inside)
    assert (seen[-1]["window"], seen[-1]["step"]) == (SECOND, 0), "the link, once it has ended"
    integers = [each["integer"] for each in seen]
    assert integers == sorted(set(integers))
    told = json.loads(followed.project.forebay("models", "ls", "ads", "--output", "json").stdout)
    inner = [each for each in told if each["state"].startswith("of a window that went on")]
    assert 0 < len(inner) <= 3
    chain = chain_of(followed)
    assert all(store_of(chain.home).is_there(each.stored) for each in chain.exports())


def cancel_once_inside_serves(followed: Following) -> None:
    chain = chain_of(followed)

    def cancel() -> None:
        eventually(lambda: bool((now := chain.published()) and now.step), 60)
        attach(chain.home, f"ads.main.{SECOND}.g1").cancel()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    assert followed.project.forebay("run", "ads", "--follow", check=False).returncode != 0
    cancelling.join(60)
    assert there(chain.published()).step


def test_a_window_that_starts_over_takes_back_what_it_served(tmp_path: Path) -> None:
    followed = serving_often(tmp_path)
    project, chain = followed.project, chain_of(followed)
    with publishing(followed, 3):
        cancel_once_inside_serves(followed)
        project.forebay("forget", "ads", SECOND)
        project.forebay("run", "ads", "--follow")
    assert [link.generation for link in links_of(followed)] == [1, 2]
    switches = chain.switches()
    back = [each.action for each in switches].index("withdraw")
    assert switches[back].model == switches[0].model
    assert switches[back].why == f"window {SECOND} starts over"
    assert all(each.generation == 2 for each in switches[back + 1 :])
    assert there(chain.published()).model == switches[-1].model
    assert switches[-1].step == 0


def test_an_hour_before_that_is_trained_again_takes_it_back_too(tmp_path: Path) -> None:
    followed = serving_often(tmp_path)
    project, chain = followed.project, chain_of(followed)
    with publishing(followed, 3):
        cancel_once_inside_serves(followed)
        first = "2026-03-02T01"
        project.forebay("run", "ads", "--from", first, "--to", first, "--reprocess")
        serves = there(chain.published())
        assert (serves.window, serves.generation, serves.step) == (first, 2, 0)
        assert chain.exports() == []
        project.forebay("run", "ads", "--follow")
    assert [(each.window, each.generation) for each in links_of(followed)][-1] == (SECOND, 1)
    assert there(links_of(followed)[-1].parent).generation == 2
