"""The nodes of a YAML text, within bounds: no text keeps its reader busy for longer than a second.

Parsing is libyaml's where PyYAML has it, which takes a tenth of the time.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

# Of one text, with what anchors and merge keys repeat.
NODES_MAX = 50_000
DEPTH_MAX = 32


class _PurePython(Reader, Scanner, Parser):
    """What libyaml does, without it."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


# The parser that is under PyYAML's own loader.
_Parser: Any = yaml.CSafeLoader.__mro__[1] if yaml.__with_libyaml__ else _PurePython


class NodeLoader(Composer, _Parser, SafeConstructor, Resolver):  # type: ignore[misc]
    """Nodes of a text, and the plain values of scalars, by the rules of PyYAML's SafeLoader."""

    def __init__(self, text: str) -> None:
        """Nothing is parsed yet.

        Raises:
            yaml.YAMLError: when the text has characters that YAML does not allow.
        """
        _Parser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401
        """The next node with all that is inside it.

        Raises:
            yaml.MarkedYAMLError: when it is no YAML, or there are more nodes than NODES_MAX, or
                more than DEPTH_MAX inside each other.
        """
        self._nodes += 1
        if self._nodes > NODES_MAX:
            self._refuse(f"the file has more than {NODES_MAX:,} keys and values")
        if self._depth == DEPTH_MAX:
            self._refuse(f"more than {DEPTH_MAX} lists and mappings inside each other")
        self._depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self._depth -= 1
        return node

    def _refuse(self, problem: str) -> None:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.peek_event().start_mark)
