"""Places in a module where a small change of the text breaks a rule."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], list[ast.cmpop]] = {
    ast.Lt: [ast.LtE(), ast.GtE()],
    ast.LtE: [ast.Lt(), ast.Gt()],
    ast.Gt: [ast.GtE(), ast.LtE()],
    ast.GtE: [ast.Gt(), ast.Lt()],
    ast.Eq: [ast.NotEq()],
    ast.NotEq: [ast.Eq()],
    ast.Is: [ast.IsNot()],
    ast.IsNot: [ast.Is()],
    ast.In: [ast.NotIn()],
    ast.NotIn: [ast.In()],
}
# How long, how often and how much at once: tuning, not rules.
_TUNING = re.compile(
    r"(^|_)(seconds|timeout|poll|every|interval|bytes|delay|backoff|threads|cache|shown)(_|$)",
    re.IGNORECASE,
)
# How a text looks: no rule either, and neither are the digits that `round` keeps.
_LOOKS = {"indent", "width"}
_NO_BRANCH = {"TYPE_CHECKING", "__name__ == '__main__'"}


@dataclass(frozen=True)
class Change:
    """Another text for one span of a module. `start` and `end` count bytes of its UTF-8."""

    line: int
    start: int
    end: int
    text: str
    what: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def places(source: bytes) -> list[list[Change]]:
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda changes: (changes[0].start, changes[0].end))


class _Finder(ast.NodeVisitor):
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
        self.found.append([Change(node.lineno, start, end, t, f"{old} -> {t}") for t in texts])

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            others = _COMPARISONS[type(operator)]
            ops = [[*node.ops[:index], other, *node.ops[index + 1 :]] for other in others]
            self._add(node, *(_text(ast.Compare(node.left, o, node.comparators)) for o in ops))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, _text(ast.BoolOp(other, node.values)))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            self._add(node, repr(node.value + 1), f"({node.value - 1!r})")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if isinstance(node.slice, ast.Constant) and node.slice.value == 0:
            self._add(node.slice, "1")  # -1 is not the one before, and often the same
        else:
            self.visit(node.slice)

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        if ast.unparse(node.test) not in _NO_BRANCH:
            self._add(node.test, "False", "True")
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit_If(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._add(test, "True")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            self._add(value, str(not value.value))
        elif isinstance(value, ast.Compare | ast.BoolOp) or (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        ):
            self._add(value, f"(not {_text(value)})")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func).startswith("_LOG."):
            return
        rounds = isinstance(node.func, ast.Name) and node.func.id == "round"
        for child in (node.func, *(node.args[:1] if rounds else node.args)):
            self.visit(child)
        for keyword in node.keywords:
            if keyword.arg not in _LOOKS and not _TUNING.search(keyword.arg or ""):
                self.visit(keyword.value)

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and not any(_TUNING.search(ast.unparse(t)) for t in targets):
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit_Assign(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Body and defaults: neither decorators nor annotations."""
        named = [*node.args.posonlyargs, *node.args.args]
        named = named[len(named) - len(node.args.defaults) :] + node.args.kwonlyargs
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        for argument, default in zip(named, defaults, strict=True):
            if default is not None and not _TUNING.search(argument.arg):
                self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_JoinedStr(self, node: ast.JoinedStr | ast.Raise) -> None:
        """Texts and messages are no rules."""

    def visit_Raise(self, node: ast.Raise) -> None:
        self.visit_JoinedStr(node)


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
