"""The training executor: takes minibatches window by window, trains, seals, links, publishes.

Run as `python -m forebay.executors.trainer --job DIR --index 0 --attempt N --lease-epoch N`. It
opens no data file, no log segment and no broker: rows come only from data executors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from forebay.config.checks.model_size import gib, model_size
from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import ConfigError
from forebay.executors.arrow_start import start_arrow
from forebay.executors.job.handle import GONE_SECONDS
from forebay.executors.job.request import JobRequest
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.retention.home_garbage import remove_spent_folders
from forebay.executors.role import Given, end_at_once, run_role
from forebay.executors.roles.table import TRAINER
from forebay.executors.trainer.loop import WindowTrainer
from forebay.home.database.base import PATIENCE
from forebay.home.paths import Home
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.make_learner import make_learner
from forebay.system.liveness import doing
from forebay.system.memory import available_bytes

_LEARNERS = "learners"


def main(arguments: list[str] | None = None) -> None:
    # It waits for the database, with what it has trained, for as long as its supervisor does.
    PATIENCE.seconds = GONE_SECONDS
    run_role(TRAINER, run, arguments, prepare)
    end_at_once()


def prepare(given: Given) -> None:
    """Make the model of the line's last job, so that the next one only has to load it."""
    start_arrow()
    request = given.link.request("the trainer")
    KeptLearners(given.kept, partial(_made, request)).next()


def _made(request: JobRequest) -> Learner:
    pipeline = request.pipeline_spec()
    columns = declared_columns(pipeline, request.source_specs())
    require_memory(pipeline)
    with doing("building the model", "computing"):
        sources, threads = len(pipeline.use_names), pipeline.job.roles.trainer.threads
        return make_learner(pipeline, columns, sources, threads)


def run(given: Given) -> None:
    """In a process that is set up."""
    start_arrow()
    request = given.link.request("the trainer")
    pipeline = request.pipeline_spec()
    columns = declared_columns(pipeline, request.source_specs())
    layout = FeatureLayout.of(pipeline.dataset, columns)
    home = Home(Path(request.home))
    remove_spent_folders(home, pipeline.name, request.line)
    chain = ModelChain(home, pipeline.name, request.line)
    if given.kept and chain.before(request.windows[0]) is None:
        given.kept.clear()  # the job begins with initial values
    learners = KeptLearners(given.kept, partial(_made, request))
    trainer = WindowTrainer(given, request, layout, learners.next)
    given.stop.then(trainer.close)
    try:
        for position, window in enumerate(request.windows):
            trainer.train(window, position)
    finally:
        trainer.close()


class KeptLearners:
    """Learners that a process which stays made for the jobs before, in the order of the first.

    A job loads what it needs into each: building a model takes longer than that.
    """

    def __init__(self, kept: dict[str, Any], make: Callable[[], Learner]) -> None:
        self._made: list[Learner] = kept.setdefault(_LEARNERS, [])
        self._left: list[Learner] = list(self._made)
        self._make = make

    def next(self) -> Learner:
        if self._left:
            return self._left.pop(0)
        made = self._make()
        self._made.append(made)
        return made


def require_memory(pipeline: PipelineSpec) -> None:
    """Refuse a model that this host cannot hold, before TensorFlow takes what there is.

    Raises:
        ConfigError: with the feature, its buckets and bytes, and the memory that is available.
    """
    size, available = model_size(pipeline), available_bytes()
    beside = 0 if pipeline.job.publish.every is None else size.bytes  # see `InnerExporter`
    if size.building_bytes + beside > available:
        raise ConfigError(
            f"{size.words}, but {gib(available)} of memory are available here: declare fewer "
            "buckets, dimensions, hidden units, seeds or rivals, or use a host with more"
        )
