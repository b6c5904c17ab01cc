"""Which parts of a declaration make a different model from the one that a line has trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forebay.config.columns import declared_columns
from forebay.config.line_defaults import FIRST, NEWEST, with_defaults
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.errors import ForebayError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.home.store import store_of
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.models.identity import IDENTITY, ModelIdentity

# A checkpoint is fetched for this if the store is a bucket, but not a larger one than that.
_BYTES_MAX = 256 * 2**20
_UNSEEN = "the label, or an option of model.mixture"


def model_changes(
    chain: ModelChain, link: Link, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> str:
    """Each difference between a declaration and the model of a link, for an error that refuses it.

    Of all versions of the defaults, the one with the fewest differences is used.
    """
    read, declared = list(link.seen), pipeline.use_names
    others = [f"sources {_listed(read)} there, {_listed(declared)} here"] * (read != declared)
    found = _identity(chain, link)
    if found is None:
        return "; ".join(others)
    # Their names say more than their number.
    found = found.model_copy(update={"sources": len(declared)})
    versions = range(NEWEST, FIRST - 1, -1)
    each = [
        _wanted(with_defaults(pipeline, version), sources).differences(found)
        for version in versions
    ]
    fewest: Sequence[str] = min(each, key=len)
    return "; ".join([*others, *fewest]) or _UNSEEN


def _listed(uses: Sequence[str]) -> str:
    return ", ".join(uses)


def _identity(chain: ModelChain, link: Link) -> ModelIdentity | None:
    """The identity of the link's checkpoint; None if it is not kept, or its model only counts."""
    stored = link.files.get("checkpoint")
    if stored is None or stored.size_bytes > _BYTES_MAX:
        return None
    try:
        tree = store_of(chain.home).tree(stored)
    except ForebayError:
        return None  # the error that this text is for matters more
    file = next(tree.rglob(IDENTITY), None)
    return None if file is None else ModelIdentity.model_validate_json(file.read_text())


def _wanted(pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]) -> ModelIdentity:
    own = {name: sources[name] for name in pipeline.source_names}
    layout = FeatureLayout.of(pipeline.dataset, declared_columns(pipeline, own))
    labels = pipeline.dataset.targets
    uses = len(pipeline.uses)
    return ModelIdentity.of(layout, pipeline.model, pipeline.train, uses, labels)
