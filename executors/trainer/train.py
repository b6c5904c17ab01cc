"""The training executor: takes minibatches window by window, trains, seals, links, publishes.

Run as `python -m forebay.executors.trainer --job DIR --index 0 --attempt N --lease-epoch N`. It
opens no data file, no log segment and no broker: rows come only from data executors.
"""

from __future__ import annotations

from pathlib import Path

from forebay.config.checks.model_size import gib, model_size
from forebay.config.explain import declared_columns
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import ConfigError
from forebay.executors.arrow_start import start_arrow
from forebay.executors.job.handle import GONE_SECONDS
from forebay.executors.retention.home_garbage import remove_spent_folders
from forebay.executors.role import Given, end_at_once, role_process
from forebay.executors.roles.table import TRAINER
from forebay.executors.trainer.loop import WindowTrainer
from forebay.home.database.base import PATIENCE
from forebay.home.paths import Home
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.make_learner import make_learner
from forebay.system.liveness import doing
from forebay.system.memory import available_bytes


def main(arguments: list[str] | None = None) -> None:
    with role_process(TRAINER, arguments) as given:
        # It waits for the database, with what it has trained, for as long as its supervisor does.
        PATIENCE.seconds = GONE_SECONDS
        run(given)
    end_at_once()


def run(given: Given) -> None:
    """In a process that is set up."""
    start_arrow()
    request = given.link.request("the trainer")
    pipeline = request.pipeline_spec()
    columns = declared_columns(pipeline, request.source_specs())
    layout = FeatureLayout.of(pipeline.dataset, columns)

    def make() -> Learner:
        require_memory(pipeline)
        with doing("building the model", "computing"):
            sources, threads = len(pipeline.use_names), pipeline.job.roles.trainer.threads
            return make_learner(pipeline, columns, sources, threads)

    remove_spent_folders(Home(Path(request.home)), pipeline.name, request.line)
    trainer = WindowTrainer(given, request, layout, make)
    given.stop.then(trainer.close)
    try:
        for position, window in enumerate(request.windows):
            trainer.train(window, position)
    finally:
        trainer.close()


def require_memory(pipeline: PipelineSpec) -> None:
    """Refuse a model that this host cannot hold, before TensorFlow takes what there is.

    Raises:
        ConfigError: with the feature, its buckets and bytes, and the memory that is available.
    """
    size, available = model_size(pipeline), available_bytes()
    if size.building_bytes > available:
        raise ConfigError(
            f"{size.words}, but {gib(available)} of memory are available here: declare fewer "
            "buckets, dimensions, hidden units, seeds or rivals, or use a host with more"
        )
