"""The way back: nobody comes back to a model that a rollback left, until it serves again."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from forebay.executors.model_line.link import Action, ServedModel, Switch
from forebay.executors.model_line.serving import served_before

AT = datetime(2026, 3, 1, tzinfo=UTC)
actions = st.lists(
    st.tuples(
        st.sampled_from(["publish", "serve", "rollback", "unpin", "withdraw"]),
        st.integers(1, 5),
        st.integers(0, 2),
    )
)


def model(number: int, step: int = 0) -> ServedModel:
    return ServedModel(window=f"2026-03-0{number}", generation=1, step=step)


def switch(name: ServedModel, action: Action) -> Switch:
    return Switch(**name.model_dump(), integer=1, action=action, who="", why="", at=AT)


@given(actions, st.sets(st.tuples(st.integers(1, 5), st.integers(1, 2))))
def test_the_way_back_goes_back_only(
    asked: list[tuple[Action, int, int]], still: set[tuple[int, int]]
) -> None:
    """Models of windows that had not ended count as long as they are kept."""
    history: list[Switch] = []
    ever = set[ServedModel]()
    kept = {model(*each) for each in still}
    for action, number, step in asked:
        name = model(number, step)
        before = served_before(history, kept)
        if action == "rollback":
            if before is None:
                continue
            name = before
        elif action == "unpin":
            if not history:
                continue
            name = history[-1].model
        history.append(switch(name, action))
        ever.add(name)
        found = served_before(history, kept)
        assert found is None or (found != name and found in ever)
        assert found is None or not found.step or found in kept


def test_again_and_again_it_reaches_the_first_and_stays() -> None:
    names = [model(number) for number in (1, 2, 3)]
    history = [switch(name, "publish") for name in names]
    for expected in (names[1], names[0]):
        assert served_before(history) == expected
        history += [switch(expected, "rollback"), switch(expected, "unpin")]
    assert served_before(history) is None
    history.append(switch(names[1], "publish"))
    assert served_before(history) == names[0], "never the third, which was left"
    history.append(switch(names[0], "serve"))
    assert served_before(history) == names[1]


def test_a_window_that_starts_over_has_no_models_to_go_back_to() -> None:
    first, second, third, again = model(1), model(2, 1), model(2, 2), model(3)
    history = [switch(each, "publish") for each in (first, second, third)]
    assert served_before(history, [second, third]) == second
    assert served_before(history, [third]) == first, "the second is no longer kept"
    history += [switch(first, "withdraw"), switch(again, "publish")]
    assert served_before(history, [second, third]) == first
