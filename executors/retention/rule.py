"""What of a window may be removed from the store: only the rule, without a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import is_warm_start

CHECKPOINT, SAVED_MODEL = "checkpoint", "saved_model"


@dataclass(frozen=True)
class WindowsKept:
    """How many of the newest windows of a line keep their files.

    others: scores, steps, and all other files of the training of a window. records: folders of
    ended jobs (as many jobs), and plans that were replaced.
    """

    checkpoints: int
    saved_models: int
    others: int
    records: int

    def of_kind(self, kind: str) -> int:
        return {CHECKPOINT: self.checkpoints, SAVED_MODEL: self.saved_models}.get(kind, self.others)

    @classmethod
    def of(cls, pipeline: PipelineSpec) -> WindowsKept:
        """As a pipeline declares it. Scores are kept as long as labels may come for them.

        So are checkpoints if `checkpoint.windows_kept` is not set: they judge the rows that come
        with these labels. If fewer are kept, rows of older models stay unjudged.
        """
        job, horizon = pipeline.job, pipeline.dataset.label_horizon
        checkpoints = job.checkpoints_kept
        judges = pipeline.model.kind == "towers" and job.judge_rows_max > 0
        if judges and job.checkpoint.windows_kept is None:
            checkpoints = max(checkpoints, horizon)
        others = max(job.windows_kept, horizon + 1)
        return cls(checkpoints, job.exports_kept, others, job.windows_kept)


class Needs(NamedTuple):
    """Links that something depends on, by their ids.

    served: the link that serves. started_from: links that a job, or the training of the next
    window, starts from; the newest link is one of them.
    """

    served: frozenset[int]
    started_from: frozenset[int]


class LinkFile(NamedTuple):
    """A stored file of a link.

    order: its window's place among others. judged: whether its judgement is stored and none of its
    labels is still to come. replaced: whether its window has a newer link.
    """

    link: int
    kind: str
    name: str
    size_bytes: int
    window: str
    generation: int
    order: tuple[int, int]
    judged: bool
    replaced: bool


def may_go(file: LinkFile, needs: Needs) -> bool:
    """Whether nothing needs a file of an old window any more.

    A line's warm start is kept: from it, all windows can be trained again. Scores are kept until
    they are judged by all their labels: from then on, reports show the judgement.
    """
    if is_warm_start(file.window):
        return False
    if file.kind == CHECKPOINT:
        return file.link not in needs.served | needs.started_from
    if file.kind == SAVED_MODEL:
        return file.link not in needs.served
    return file.judged or file.replaced
