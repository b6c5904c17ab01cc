"""Places in a module where a rule can be made wrong by a small change of its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
# How long, how often and how much at once: tuning, not rules.
_TUNING = re.compile(
    r"(^|_)(seconds|timeout|poll|every|interval|bytes|delay|backoff|attempts|max_workers)(_|$)",
    re.IGNORECASE,
)
_LOGGERS = frozenset({"_LOG", "LOG", "logger", "logging"})


@dataclass(frozen=True)
class Change:
    """Another text for one span of a module. `start` and `end` count bytes of its UTF-8."""

    line: int
    start: int
    end: int
    text: str
    what: str

    def applied(self, source: bytes) -> bytes:
        """The module with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def places(source: bytes) -> list[list[Change]]:
    """All places of a module in their order, each with the changes that are possible there."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda changes: (changes[0].start, changes[0].end))


class _Finder(ast.NodeVisitor):
    """Collects the changes of every node that is a rule's and not a text's or an annotation's."""

    def __init__(self, source: bytes) -> None:
        self.found: list[list[Change]] = []
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _add(self, node: ast.expr, *texts: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = " ".join(self._source[start:end].decode().split())
        self.found.append(
            [Change(node.lineno, start, end, text, f"{old} -> {text}") for text in texts]
        )

    def visit_Compare(self, node: ast.Compare) -> None:
        """Each operator becomes its neighbour or its opposite."""
        for index, operator in enumerate(node.ops):
            texts = []
            for other in _COMPARISONS[type(operator)]:
                ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                texts.append(_text(ast.Compare(node.left, ops, node.comparators)))
            self._add(node, *texts)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` becomes `or`, and the other way round."""
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, _text(ast.BoolOp(other, node.values)))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A number becomes one more or one less; a returned or assigned bool stays."""
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            self._add(node, repr(node.value + 1), f"({node.value - 1!r})")

    def visit_If(self, node: ast.If) -> None:
        """One of the two branches is dropped."""
        if ast.unparse(node.test) in {"TYPE_CHECKING", "__name__ == '__main__'"}:
            return
        self._add(node.test, "False", "True")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """One of the two values is dropped."""
        self._add(node.test, "False", "True")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """A filter lets everything through."""
        for test in node.ifs:
            self._add(test, "True")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """A returned truth value is turned round."""
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            self._add(value, str(not value.value))
        elif isinstance(value, ast.Compare | ast.BoolOp) or (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        ):
            self._add(value, f"(not {_text(value)})")
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are no rules."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Neither are messages."""

    def visit_Call(self, node: ast.Call) -> None:
        """Log calls have no effect on results; descriptions and tuning are left alone."""
        function = node.func
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id in _LOGGERS
        ):
            return
        self.visit(function)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg is None or not _TUNING.search(keyword.arg):
                self.visit(keyword.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The value only: annotations are not run."""
        if node.value is not None and not _TUNING.search(ast.unparse(node.target)):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Every named number but tuning."""
        if not any(_TUNING.search(ast.unparse(target)) for target in node.targets):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Body and defaults: neither decorators nor annotations."""
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """As a function."""
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for name, default in _defaults(node.args):
            if not _TUNING.search(name):
                self.visit(default)
        for statement in node.body:
            self.visit(statement)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for argument, default in zip(with_default, arguments.defaults, strict=True):
        yield argument.arg, default
    for argument, optional in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if optional is not None:
            yield argument.arg, optional


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
