"""What a supervisor does next, for all that may be wanted and all that may be there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from forebay.executors.roles.resources import Desired, Resources
from forebay.executors.supervisor.reconcile import Action, End, Seen, Start, actions, newer

ROLES = ("driver", "data", "trainer", "cache")
LIMITS = st.builds(
    Resources,
    cpu_cores=st.sampled_from([None, 0.5, 2.0]),
    memory_bytes=st.sampled_from([None, 1 << 30, 2 << 30]),
)
DESIRED = st.builds(
    Desired,
    version=st.integers(1, 4),
    counts=st.fixed_dictionaries({role: st.integers(0, 3) for role in ROLES}),
    resources=st.fixed_dictionaries(dict.fromkeys(ROLES, LIMITS)),
)
SEEN = st.builds(
    Seen,
    role=st.sampled_from(ROLES),
    index=st.integers(0, 3),
    is_running=st.booleans(),
    due=st.none() | st.floats(-5, 5),
    is_ready=st.booleans(),
    is_ending=st.booleans(),
    asked=st.none() | LIMITS,
)
THERE = st.lists(SEEN, unique_by=lambda each: (each.role, each.index), max_size=12).map(
    lambda found: [replace(each, due=None) if each.is_running else each for each in found]
)


@dataclass
class World:
    """Carries actions out: what ends or gets ready has done so by the next step."""

    desired: Desired
    there: dict[tuple[str, int], Seen] = field(default_factory=dict)

    def step(self, now: float) -> list[Action]:
        for key, each in list(self.there.items()):
            if each.is_ending and each.is_running:
                del self.there[key]
            elif each.is_running:
                self.there[key] = replace(each, is_ready=True)
        done = actions(self.desired, self.there.values(), now)
        for action in done:
            key = (action.role, action.index)
            each = self.there.get(key, Seen(*key))
            if isinstance(action, Start):
                limits = self.desired.resources[action.role].without_cpu
                each = replace(each, is_running=True, due=None, is_ready=False, asked=limits)
            elif isinstance(action, End):
                each = replace(each, is_ending=True, due=None)
            else:
                each = replace(each, asked=action.to)
            self.there[key] = each
        return done


@given(DESIRED, THERE, st.floats(-5, 5))
def test_one_action_for_each_process_and_none_above_what_is_wanted(
    desired: Desired, there: list[Seen], now: float
) -> None:
    found = actions(desired, there, now)
    assert len({(each.role, each.index) for each in found}) == len(found)
    by_key = {(each.role, each.index): each for each in there}
    for action in found:
        known = by_key.get((action.role, action.index))
        is_wanted = action.index < desired.counts[action.role]
        assert is_wanted != isinstance(action, End)
        if isinstance(action, Start):
            assert known is None or not known.is_running
            assert known is None or (known.due is not None and known.due <= now)


@given(DESIRED, THERE)
def test_whatever_was_there_becomes_what_is_wanted_and_then_nothing_happens(
    desired: Desired, there: list[Seen]
) -> None:
    # One that is not to be started again stays ended: its supervisor decided so.
    given_up = {(e.role, e.index) for e in there if not e.is_running and e.due is None}
    world = World(desired, {(each.role, each.index): each for each in there})
    for now in (10.0, 11.0, 12.0, 13.0):
        world.step(now)
    assert world.step(14.0) == []
    running = {key for key, each in world.there.items() if each.is_running}
    wanted = {(role, index) for role, count in desired.counts.items() for index in range(count)}
    assert running == wanted - given_up
    assert all(world.there[key].asked == desired.resources[key[0]] for key in running)


@given(st.lists(DESIRED, min_size=1, max_size=6))
def test_nobody_goes_back_to_an_older_version(told: list[Desired]) -> None:
    now = told[0]
    for found in told:
        now = newer(now, found)
        assert now.version >= found.version
    assert newer(now, None) is now
    assert now in told
