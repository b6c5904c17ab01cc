"""Exports the model of a window whose checkpoint is kept: most windows have no SavedModel."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from forebay.config.explain import declared_columns
from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.executors.job.request import JobRequest
from forebay.executors.link.local import LocalLink
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import FileKind, Link
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.model_line.start import model_changes
from forebay.executors.trainer.exports.export import CheckedExport
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.trainer.train import require_memory
from forebay.home.store.base import Stored
from forebay.home.store.open import own_store
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.make_learner import make_learner


def export_window(
    project: Project, pipeline: PipelineSpec, chain: ModelChain, link: Link
) -> dict[FileKind, Stored]:
    """Export a link's checkpoint as its trainer would have, gate included, and store it.

    Nothing names the result yet.

    Raises:
        ConfigError: when the declaration has changed since, or the model needs more memory.
        DataError: when the checkpoint, or scores that the gate reads, are missing or damaged.
        InfrastructureError: when the store fails.
    """
    fingerprint = model_fingerprint_of(pipeline, project.sources)
    if link.model_fingerprint != fingerprint:
        changes = model_changes(chain, link, pipeline, project.sources)
        chain.require_same_fingerprint(link, fingerprint, changes)
    require_memory(pipeline)
    request = JobRequest.of(
        "export",
        chain.home.root,
        project.root,
        pipeline,
        project.sources,
        [],
        line=chain.line,
        declared=project.declared(pipeline.name),
    )
    columns = declared_columns(pipeline, request.source_specs())
    layout = FeatureLayout.of(pipeline.dataset, columns)
    threads = pipeline.job.roles.trainer.threads
    learner = make_learner(pipeline, columns, len(pipeline.use_names), threads)
    archive = WindowArchive(own_store(chain.home), pipeline.name, chain.line)
    archive.load(learner, link)
    with TemporaryDirectory() as name:
        folder = Path(name)
        progress = ProgressReporter(LocalLink(folder), pipeline.use_names, 0)
        export = CheckedExport(request, layout, learner, progress)
        return export.store(link, chain, archive, folder)
