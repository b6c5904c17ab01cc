"""ModelSpec: what learns, and the choices that Primus Algorithm 1 leaves open."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from forebay.config.base import Spec

Units = Annotated[int, Field(ge=1, le=65536)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Paradigm = Literal["batch", "stream", "batch_then_stream", "mixed", "mixture"]


class TowerSpec(Spec):
    """Hidden layers of one tower, each followed by ReLU; the output is one logit."""

    hidden: tuple[Units, ...] = (64, 32)


class MixtureSpec(Spec):
    """What `paradigm: mixture` adds (Primus Alg. 1).

    gain: factor on the memory tower's output before the adapt tower reads it.
    memory_output: what the adapt tower reads: the logit, the last hidden layer, or both.
    embeddings: who updates the tables: both towers (`shared`), each its own (`separate`), or one.
    stop_gradient: `output` cuts the stream gradient at the memory output; `theta_only` lets it
    pass through frozen memory weights into shared embeddings.
    """

    memory_tower: TowerSpec = TowerSpec(hidden=(32, 16))
    adapt_tower: TowerSpec = TowerSpec()
    gain: float = Field(default=0.05, ge=0, allow_inf_nan=False)
    memory_output: Literal["logit", "hidden", "both"] = "logit"
    embeddings: Literal["shared", "separate", "memory_only", "adapt_only"] = "shared"
    stop_gradient: Literal["output", "theta_only"] = "output"


class ModelSpec(Spec):
    """`kind: towers` trains with TensorFlow; `kind: count` only counts rows (a dry run)."""

    kind: Literal["towers", "count"] = "towers"
    tower: TowerSpec = Field(default=TowerSpec(), description="Tower of the other paradigms")
    mixture: MixtureSpec = MixtureSpec()
    embedding_learning_rate: Rate = 0.1
    dense_learning_rate: Rate = 0.003
    seed: int = 17
