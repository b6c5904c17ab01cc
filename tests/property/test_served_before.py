"""The way back: nobody comes back to a model that a rollback left, until it serves again."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from forebay.executors.model_line.link import Action, Parent, Switch
from forebay.executors.model_line.serving import served_before

AT = datetime(2026, 3, 1, tzinfo=UTC)
actions = st.lists(
    st.tuples(st.sampled_from(["publish", "serve", "rollback", "unpin"]), st.integers(1, 5))
)


def switch(name: Parent, action: Action) -> Switch:
    return Switch(**name.model_dump(), integer=1, action=action, who="", why="", at=AT)


@given(actions)
def test_the_way_back_goes_back_only(asked: list[tuple[Action, int]]) -> None:
    history: list[Switch] = []
    ever = set[Parent]()
    for action, number in asked:
        name = Parent(window=f"2026-03-0{number}", generation=1)
        before = served_before(history)
        if action == "rollback":
            if before is None:
                continue
            name = before
        elif action == "unpin":
            if not history:
                continue
            name = history[-1].name
        history.append(switch(name, action))
        ever.add(name)
        found = served_before(history)
        assert found is None or (found != name and found in ever)


def test_again_and_again_it_reaches_the_first_and_stays() -> None:
    names = [Parent(window=f"2026-03-0{number}", generation=1) for number in (1, 2, 3)]
    history = [switch(name, "publish") for name in names]
    for expected in (names[1], names[0]):
        assert served_before(history) == expected
        history += [switch(expected, "rollback"), switch(expected, "unpin")]
    assert served_before(history) is None
    history.append(switch(names[1], "publish"))
    assert served_before(history) == names[0], "never the third, which was left"
    history.append(switch(names[0], "serve"))
    assert served_before(history) == names[1]
