"""The summary of a run: rows, metrics, proof and paths, as `--summary FILE` holds it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import GateDecision, Serving
from forebay.home.paths import DEFAULT_LINE
from forebay.mixture.advice.recommendation import ToldAdvice
from forebay.mixture.metrics.figures import Pooled
from forebay.mixture.row_sums import RowSums
from forebay.system.message import Kept


class RunFacts(Kept):
    """What only the run that trained the windows knows, or their jobs."""

    restarts: dict[str, int] = Field(default_factory=dict)
    phases_seconds: dict[str, float] = Field(default_factory=dict)
    trained_windows: list[str] = Field(default_factory=list)
    reused_windows: list[str] = Field(default_factory=list)
    storage_calls: int | None = None
    notes: list[str] = Field(default_factory=list)


class LabelSummary(Kept):
    """Of one of several labels, after the first."""

    pooled: Pooled
    advice: ToldAdvice | None


class Summary(RunFacts):
    """Windows that are all trained, in order, and what they say together.

    seen, model: of the newest one. first_label: with several, the one that figures are for; else
    empty.
    """

    pipeline: str = ""
    line: str = DEFAULT_LINE
    paradigms: list[str] = Field(default_factory=list)
    windows: list[Judgement]
    warm_start: Judgement | None = None
    stale_windows: list[str] = Field(default_factory=list)
    seen: dict[str, RowSums] = Field(default_factory=dict)
    model: str = ""
    published: Serving | None = None
    gate: GateDecision | None = None
    pooled: Pooled = Pooled()
    advice: ToldAdvice | None = None
    first_label: str = ""
    labels: dict[str, LabelSummary] = Field(default_factory=dict)
    offset_words: list[str] = Field(default_factory=list)
    rows_agree: bool
    rows_line: str

    def document(self) -> dict[str, Any]:
        """As JSON; what is about several labels is there where there are some."""
        several = set() if self.labels else {"first_label", "labels"}
        return self.model_dump(mode="json", by_alias=True, exclude=several)

    @property
    def by_label(self) -> dict[str, Summary]:
        """As if each label after the first were the only one."""
        return {
            name: self.model_copy(
                update={
                    "pipeline": f"{self.pipeline}, label {name}",
                    "windows": [one.by_label(one.part(name)) for one in self.windows],
                    "pooled": own.pooled,
                    "advice": own.advice,
                    "gate": None,
                    "first_label": name,
                    "labels": {},
                }
            )
            for name, own in self.labels.items()
        }

    @property
    def all_windows(self) -> list[Judgement]:
        return [*([self.warm_start] if self.warm_start else []), *self.windows]

    @property
    def period(self) -> str:
        """Which windows these are."""
        keys = [window.window for window in self.windows]
        if len(keys) < 2:
            return f"window {keys[0]}" if keys else "no windows"
        return f"{len(keys)} windows, {keys[0]} to {keys[-1]}"

    @property
    def sources(self) -> list[str]:
        """Every source of the run, in declared order."""
        return list(dict.fromkeys(name for window in self.windows for name in window.sources))

    @property
    def positives_known(self) -> float | None:
        """The share of positives known at publication; None where no stream is read."""
        found = self.pooled.label_completeness
        return found.share if found and any(one.has_stream for one in self.windows) else None

    @property
    def has_event(self) -> bool:
        """Whether event scores are kept, even if there are none yet."""
        return any(window.answers for window in self.windows)

    def not_known(self, window: Judgement) -> int:
        """Rows that were not trained on for this label, as it was not known in time."""
        return window.not_known(self.first_label)

    @property
    def has_not_known(self) -> bool:
        return any(map(self.not_known, self.all_windows))

    @property
    def restarted(self) -> dict[str, int]:
        return {role: count for role, count in self.restarts.items() if count}
