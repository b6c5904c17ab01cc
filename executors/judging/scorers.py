"""LinkScorers: the models of earlier links, one at a time, in a separate learner."""

from __future__ import annotations

from collections.abc import Callable

from forebay.errors import DataError
from forebay.executors.judging.judge import Scorer
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, Parent
from forebay.mixture.learner import Learner


class LinkScorers:
    """Loads checkpoints of one line into a second learner, which is made when one is needed.

    It takes the memory of a second model; no variable of the one in training is touched.
    """

    def __init__(
        self,
        chain: ModelChain,
        make: Callable[[], Learner],
        load: Callable[[Learner, Link], None],
    ) -> None:
        """Nothing is made or loaded yet.

        Args:
            chain: the line.
            make: a learner of the line's pipeline.
            load: brings a learner to the state in which a link ended.
        """
        self._chain = chain
        self._make = make
        self._load = load
        self._learner: Learner | None = None
        self._standing: Parent | None = None

    def scorer(self, name: Parent) -> Scorer | None:
        """The model of a link; None where its checkpoint is no longer kept.

        Raises:
            DataError: when the checkpoint is kept but is not what was stored.
        """
        if self._learner is not None and self._standing == name:
            return self._learner.score
        link = self._kept(name)
        if link is None:
            return None
        if self._learner is None:
            self._learner = self._make()
        self._standing = None
        try:
            self._load(self._learner, link)
        except DataError:
            if self._kept(name) is None:
                return None  # it was removed while it was read
            raise
        self._standing = name
        return self._learner.score

    def _kept(self, name: Parent) -> Link | None:
        link = self._chain.link(name.window, name.generation)
        return link if link is not None and "checkpoint" in link.files else None
