"""A line of one source whose declaration changes between its windows, without training."""

from __future__ import annotations

from collections.abc import Sequence

from forebay.datatasks.planning.operations import shares_of
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.model_line.adjoining import (
    coverage_after,
    covered_by,
    require_adjoining,
    require_all_adjoining,
)
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.paths import Home
from support.links import link, window_of
from support.model_lines import keep_checkpoint, record
from support.stages import memory_source, pipeline


class CoveredLine:
    """Days of March 2026, or windows by their keys; each is planned as declared at that time."""

    def __init__(self, home: Home) -> None:
        self.chain = ModelChain(home, "ads")
        self.source = memory_source("a")
        self.offset_days = 0
        self.cut = self.reason = ""
        self.partitions: dict[str, tuple[int, int]] = {}

    def declare(self, **keys: str) -> None:
        self.source = memory_source("a", **keys)

    @staticmethod
    def key(day: int | str) -> str:
        return day if isinstance(day, str) else f"2026-03-{day:02}"

    def plan(self, day: int | str, generation: int = 1) -> WindowPlan:
        window = window_of(self.key(day))
        stream = {"sources": ["a"], "offset": f"{self.offset_days}d"}
        spec = pipeline(("a",), dataset={"streams": {"a": stream}})
        (share,) = shares_of(spec, {"a": self.source}, [window])["a"]
        looked = {"offsets": self.partitions, "cut": self.cut, "reason": self.reason}
        plan = share.plan(**({} if share.span is None else looked))
        return WindowPlan(
            window=window.key,
            generation=generation,
            start=window.start,
            end=window.end,
            sources={"a": plan},
            fingerprint="",
        )

    def require(self, *days: int) -> None:
        self.require_plans([self.plan(day) for day in days])

    def require_plans(self, plans: Sequence[WindowPlan]) -> None:
        require_all_adjoining(self.chain, {"a": self.source}, plans)

    def train(self, *days: int | str, generation: int = 1) -> list[Link]:
        return [self._train(self.plan(day, generation)) for day in days]

    def _train(self, plan: WindowPlan) -> Link:
        parent = self.chain.before(plan.as_window)
        require_adjoining(self.chain, {"a": self.source}, plan, covered_by(parent))
        seen = {"a": 0}
        made = link(
            plan.window,
            seen,
            seen,
            generation=plan.generation,
            parent=(parent.window, parent.generation) if parent else None,
            coverage=coverage_after(plan, covered_by(parent)),
        )
        record(self.chain, made)
        return keep_checkpoint(self.chain, made)
