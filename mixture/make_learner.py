"""make_learner: the learner that a pipeline declares. Only towers import TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import ColumnType
from forebay.mixture.counting import CountingLearner
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.learner import Learner
from forebay.mixture.tensorflow_start import start_tensorflow


def make_learner(
    pipeline: PipelineSpec, columns: Mapping[str, ColumnType], source_count: int, threads: int
) -> Learner:
    """Make the learner of a pipeline whose sources declare `columns`.

    Raises:
        MissingExtraError: when towers are to be trained and TensorFlow is not installed.
    """
    if pipeline.model.kind == "count":
        return CountingLearner(source_count)
    start_tensorflow(threads)
    from forebay.mixture.models.towers_learner import TowersLearner

    layout = FeatureLayout.of(pipeline.dataset, columns)
    labels = pipeline.dataset.targets
    return TowersLearner(layout, pipeline.model, pipeline.train, source_count, labels)
