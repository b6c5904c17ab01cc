"""What people do to a line besides: they begin it anew, ask why, and follow the advice."""

from __future__ import annotations

import inspect
import shlex
from dataclasses import dataclass, field
from typing import Any

from forebay.executors.run import Run
from forebay.executors.stages.why import Why, why_window
from support.sequences.operations import Operations, now

_RUN_OPTIONS = inspect.signature(Run.execute).parameters.keys()


@dataclass
class LineOperations(Operations):
    """begun_anew: lines of which all was forgotten."""

    begun_anew: set[str] = field(default_factory=set)

    def begin_anew(self, line: str) -> None:
        self.target(line).chain.begin_anew(forget_plans=True)
        self.begun_anew.add(line)

    def why(self, window: str, line: str) -> Why:
        return why_window(self.at(window, line), now)

    def follow(self, command: str) -> dict[str, Any]:
        program, name, _, *words = shlex.split(command)
        assert program == "forebay"
        options, left = _options(words)
        line = str(options.pop("line", "main"))
        if name == "run":
            first, last = str(options.pop("from")), str(options.pop("to"))
            reprocess = bool(options.pop("reprocess", False))
            more = {each.replace("-", "_"): value for each, value in options.items()}
            assert more.keys() <= _RUN_OPTIONS, command
            return self.run(first, last, line, reprocess=reprocess, **more)
        assert name == "forget", command
        assert (len(left), tuple(options)) in {(1, ()), (0, ("all",))}, command
        if left:
            self.forget(left[0], line)
        else:
            self.begin_anew(line)
        return {}


def _options(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    options: dict[str, Any] = {}
    left: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            left.append(word)
        elif words and not words[0].startswith("--"):
            options[word[2:]] = words.pop(0)
        else:
            options[word[2:]] = True
    return options, left
