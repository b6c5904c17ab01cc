"""The nodes of a YAML text, within bounds: reading takes at most a second, whatever the text.

libyaml does the parsing if PyYAML was built with it; it takes a tenth of the time.
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

# Per text, counting what anchors and merge keys repeat.
NODES_MAX = 50_000
DEPTH_MAX = 32


class _PurePython(Reader, Scanner, Parser):
    """The same parser in pure Python, for PyYAML without libyaml."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


# The parser that PyYAML's own loader is based on.
_Parser: Any = yaml.CSafeLoader.__mro__[1] if yaml.__with_libyaml__ else _PurePython


class NodeLoader(Composer, _Parser, SafeConstructor, Resolver):  # type: ignore[misc]
    """Nodes of a text, and plain values of scalars, by the rules of PyYAML's SafeLoader."""

    def __init__(self, text: str) -> None:
        """Create a loader; nothing is parsed yet.

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
        """The next node with everything inside it.

        Raises:
            yaml.MarkedYAMLError: when it is not YAML, has more nodes than NODES_MAX, or is nested
                more deeply than DEPTH_MAX.
        """
        self._nodes += 1
        if self._nodes > NODES_MAX:
            self._refuse(f"the file has more than {NODES_MAX:,} keys and values")
        if self._depth == DEPTH_MAX:
            self._refuse(f"lists and mappings are nested more than {DEPTH_MAX} deep")
        self._depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self._depth -= 1
        return node

    def _refuse(self, problem: str) -> None:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.peek_event().start_mark)
