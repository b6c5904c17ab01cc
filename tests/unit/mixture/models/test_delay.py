"""Variants that correct late labels: what moves, what is left out, seeds, and the guard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.learning import make_towers, minibatch

from forebay.errors import TrainingError
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.minibatch_rows import joined

HOUR = 3600.0


def late(feed: Any, seed: int, rows: int = 128, share: float = 0.5) -> Any:
    """Rows whose positives of odd items come late: the stream knows `share` of them in an hour."""
    batch, rng = minibatch(feed, seed, rows=rows), np.random.default_rng(seed + 10_000)
    odd = batch.ids[:, 1] % 2 == 1
    came, waits = ~odd | (rng.random(rows) < share), np.full(rows, HOUR, np.float32)
    known = np.where(batch.labels > 0, came, 1).astype(np.float32)
    if feed == "stream":
        return replace(batch, labels=batch.labels * came.astype(np.float32), waits=waits)
    return replace(batch, waits=waits, known=known)


def shares(learner: Any, batch: Any) -> Any:
    """What the delay head says of rows."""
    import tensorflow as tf

    from forebay.mixture.models.late.delay_head import DelayRows
    from forebay.mixture.models.layers.embeddings import locate
    from forebay.mixture.models.paradigm import Inputs

    lists = tuple((tf.constant(s), tf.constant(v)) for s, v in batch.lists)
    places = locate(learner._stacks, tf.constant(batch.ids), lists, distinct=False)
    waits = tf.constant(batch.waits)
    delays = DelayRows(waits, tf.fill(waits.shape, float("nan")))
    inputs = Inputs(tf.constant(batch.dense), places)
    return learner._seeds[0].heads[0].known_share(inputs, delays).numpy()


def parts(learner: Any) -> dict[str, Any]:
    return {name: each.numpy() for name, each in learner._seeds[0].variables.items()}


def moved(learner: Any, batch: Any) -> set[str]:
    before = parts(learner)
    learner.learn(batch)
    names = {name for name, value in parts(learner).items() if (value != before[name]).any()}
    known = ("delay_head", "guard", *sorted(learner.paradigms, key=len, reverse=True))
    return {next(part for part in known if name.startswith(part)) for name in names}


def test_the_head_begins_near_1_and_learns_what_comes_late() -> None:
    learner, rows = make_towers("mixture+head"), late("stream", 1, rows=400)
    assert shares(learner, rows).min() > 0.96
    for seed in range(150):
        learner.learn(late("batch", seed))
    found, odd = shares(learner, rows), rows.ids[:, 1] % 2 == 1
    assert found[odd].mean() == pytest.approx(0.5, abs=0.12)
    assert found[~odd].mean() > 0.9


def test_the_wait_counts_and_may_be_unknown() -> None:
    learner = make_towers("stream+head", model={"dense_learning_rate": 0.01})
    rng = np.random.default_rng(1)
    for seed in range(150):
        batch = late("batch", seed)
        waits = rng.choice([0.0, 10 * HOUR], len(batch)).astype(np.float32)
        learner.learn(replace(batch, waits=waits, known=(waits > 0).astype(np.float32)))
    rows = late("stream", 1)
    found = [
        shares(learner, replace(rows, waits=np.full(128, wait, np.float32))).mean()
        for wait in (0.0, 10 * HOUR, np.nan)
    ]
    assert found[0] < 0.2
    assert found[1] > 0.8
    assert 0 < found[2] < 1


def test_who_moves() -> None:
    learner = make_towers("stream+head", "mixed+fnw", "stream")
    batch, stream = late("batch", 1), late("stream", 2)
    assert moved(learner, batch) == {"delay_head", "mixed+fnw"}
    assert moved(learner, stream) == {"stream+head", "mixed+fnw", "stream"}
    unknown = replace(batch, known=np.full(len(batch), np.nan, np.float32))
    assert moved(learner, unknown) == {"mixed+fnw"}, "nobody knows what was late"
    assert moved(learner, replace(batch, labels=batch.labels * 0)) == {"mixed+fnw"}
    assert moved(learner, replace(batch, known=None, waits=None)) == {"mixed+fnw"}


def test_fnw_learns_the_late_positives_of_batch_rows() -> None:
    learner, batch = make_towers("stream+fnw", "mixture+fnw"), late("batch", 1)
    on_time = replace(batch, known=np.ones(len(batch), np.float32))
    assert moved(learner, on_time) == {"mixture+fnw"}, "its memory tower"
    assert moved(learner, batch) == {"mixture+fnw", "stream+fnw"}
    positives = int(((batch.labels > 0) & (batch.known == 0)).sum())
    assert sum(learner.learnt()["stream+fnw"]) == positives > 0
    assert sum(learner.learnt()["mixture+fnw"]) == 2 * len(batch)


def test_in_the_warm_start_fnw_learns_no_late_positive_of_rows_that_it_has_not_learnt() -> None:
    learner = make_towers("batch_then_stream+fnw", "mixture+fnw", "mixed+fnw")
    models = {model.name: model for model in learner._models}
    for phase in ("warm_start", "warm_start_end"):
        found = {name: dict(each.parts("batch", phase)) for name, each in models.items()}
        assert found["batch_then_stream+fnw"] == {"tower": ("complete",)}
        assert found["mixture+fnw"] == {"memory": ("complete",), "alone": ("complete",)}
        assert found["mixed+fnw"] == {"tower": ("complete and late",)}
    single = models["batch_then_stream+fnw"]
    assert dict(single.parts("stream", "warm_start_end")) == {"tower": ("fresh",)}
    assert dict(single.parts("batch", "window")) == {"tower": ("late",)}


def test_corrections_make_up_for_what_is_not_known_yet() -> None:
    names = ("stream", "stream+head", "stream+fnw", "mixture+head")
    learner = make_towers(*names, train={"guard": False})
    for seed in range(300):
        learner.learn(late("batch" if seed % 2 else "stream", seed, share=0.3))
    rows = [minibatch("batch", seed, rows=256) for seed in range(1000, 1012)]
    truth = np.concatenate([batch.labels for batch in rows])
    scores = np.concatenate([learner.score(batch)[:, :4] for batch in rows])
    plain, *corrected = scores.mean(axis=0) / truth.mean()
    assert plain < 0.85
    np.testing.assert_allclose(corrected, 1, atol=0.1)


def test_masked_rows_are_counted_and_teach_nothing(tmp_path: Path) -> None:
    learner = make_towers("stream+head", "stream", model={"delay_head": {"q_min": 0.9999}})
    batch, before = late("stream", 1), parts(learner)
    losses, after = learner.learn(batch), parts(learner)
    assert set(losses) == {"stream"}
    assert not any((after[n] != before[n]).any() for n in before if n.startswith("stream+head"))
    rows = np.bincount(batch.sources, minlength=2).tolist()
    assert learner.left_out()["stream+head"] == (rows, [0, 0])
    assert learner.left_out()["stream"] == ([0, 0], [0, 0])
    assert learner.learnt() == {"stream+head": [0, 0], "stream": rows}
    assert [sums.rows for sums in learner.seen()] == rows
    learner.save(tmp_path)
    again = make_towers("stream+head", "stream")
    again.load(tmp_path)
    assert again.left_out() == learner.left_out()


def test_a_head_that_spoils_is_named() -> None:
    batch = late("batch", 1)
    with pytest.raises(TrainingError, match="paradigm delay head is not finite"):
        make_towers("stream+head").learn(replace(batch, waits=np.full_like(batch.waits, np.inf)))


def test_further_seeds_are_the_models_of_those_seeds(tmp_path: Path) -> None:
    names = ("mixture+head", "stream")
    three = make_towers(*names, train={"seeds": 3})
    alone, first = make_towers(*names, model={"seed": 17 + 2}), make_towers(*names)
    further = [f"{name}@{seed}" for seed in (1, 2) for name in names]
    assert [each.name for each in three.columns] == [*names, "mixture+head/memory", *further]
    for seed in range(8):
        batch = late("stream" if seed % 2 else "batch", seed)
        found, _, losses = (learner.learn(batch) for learner in (three, alone, first))
        assert set(losses) <= set(found)
        scores = three.score(batch)
        np.testing.assert_array_equal(scores[:, :3], first.score(batch))
        np.testing.assert_array_equal(scores[:, 5:], alone.score(batch)[:, :2])
    three.save(tmp_path)
    again = make_towers(*names, train={"seeds": 3}, model={"seed": 99})
    again.load(tmp_path)
    np.testing.assert_array_equal(again.score(batch), three.score(batch))
    assert three.learnt() == first.learnt()


def test_a_loaded_checkpoint_continues_bit_for_bit(tmp_path: Path) -> None:
    names = ("mixture+head", "stream+fnw")
    learner = make_towers(*names)
    again = make_towers(*names, model={"seed": 5, "dense_learning_rate": 0.003})
    again.learn(late("batch", 77))
    for seed in range(6):
        learner.learn(late("stream" if seed % 2 else "batch", seed))
    learner.save(tmp_path)
    again.load(tmp_path)
    for seed in range(6, 12):
        for name, value in parts(learner).items():
            np.testing.assert_array_equal(value, parts(again)[name], err_msg=name)
        batch = late("stream" if seed % 2 else "batch", seed)
        np.testing.assert_array_equal(learner.score(batch), again.score(batch))
        assert learner.learn(batch) == again.learn(batch)
        np.testing.assert_array_equal(shares(learner, batch), shares(again, batch))
    for told in ("guards", "left_out", "learnt", "seen"):
        assert getattr(learner, told)() == getattr(again, told)()


def of(source: int, feed: Any, seed: int, rows: int = 128) -> Minibatch:
    return replace(minibatch(feed, seed, rows), sources=np.full(rows, source, np.int32))


def warm(learner: Any, steps: int = 120) -> None:
    for seed in range(steps):
        learner.learn(of(1, "stream", seed) if seed % 2 else of(0, "batch", seed))


def paused(learner: Any) -> bool:
    _, state = learner.guards()["stream"]
    return state is not None and bool(state.paused)


def silent(seed: int) -> Any:
    """Rows of a stream whose labels stopped coming."""
    batch = of(1, "stream", seed)
    return replace(batch, labels=np.zeros_like(batch.labels))


@pytest.mark.guarantee(
    "labels of a stream stop coming",
    "once the guard knows what is usual ([after 400 expected positives](../learning.md#the-"
    "guard)), learning from it pauses and the memory tower answers until they come again; the "
    "rows are counted (`stream/paused`) and never trained on from the stream",
)
@pytest.mark.parametrize("reference", ["mixture", "batch"])
def test_the_guard_pauses_and_memory_answers(reference: str, tmp_path: Path) -> None:
    names = ("stream", "mixed", *([] if reference == "batch" else ["batch"]), reference)
    learner = make_towers(*names)
    warm(learner)
    guards = learner.guards()
    assert set(guards) == {name for name in names if name != "batch"}
    assert guards["stream"][0] is None, "batch rows are not watched"
    assert not paused(learner)
    column = [c.name for c in learner.columns].index(
        "mixture/memory" if reference == "mixture" else "batch"
    )
    held = 0
    for seed in range(500, 512):
        learner.learn(silent(seed))
        if paused(learner):
            held += 128
    assert held > 5 * 128, "found within a few hundred rows"
    assert sum(learner.left_out()["stream"].paused) == held
    assert sum(learner.learnt()["stream"]) == 60 * 128 + 12 * 128 - held
    rows = minibatch("stream", 900)
    scores = learner.score(rows)
    np.testing.assert_array_equal(scores[:, 0], scores[:, column])
    np.testing.assert_array_equal(scores[:, 1], scores[:, column])
    before = parts(learner)
    assert learner.learn(silent(600)) == {}
    same, after = [n for n in before if not n.startswith("guard")], parts(learner)
    assert all((after[name] == before[name]).all() for name in same), "nothing moves"
    assert "mixed" in learner.learn(minibatch("batch", 601)), "batch rows are learnt all the same"
    learner.save(tmp_path)
    again = make_towers(*names)
    again.load(tmp_path)
    assert again.guards() == learner.guards()
    assert paused(again)
    for seed in range(700, 712):
        learner.learn(of(1, "stream", seed))
    assert not paused(learner)
    scores = learner.score(rows)
    assert (scores[:, 0] != scores[:, column]).any()
    unguarded = make_towers(*names, train={"guard": False})
    unguarded.load(tmp_path)
    assert unguarded.guards() == {}
    again.load(tmp_path)
    assert again.guards()["stream"][1].pauses == 1


def both(seed: int, healthy: float = 0.0) -> Any:
    """A minibatch of two sources of the stream; of the first one's positives few are known."""
    broken, sound = of(1, "stream", seed), of(2, "stream", seed + 5_000)
    known = np.random.default_rng(seed).random(128) < healthy
    return joined([replace(broken, labels=broken.labels * known), sound])


@pytest.mark.guarantee(
    "labels of one of several stream sources stop coming",
    "only its rows are held back, and counted by source; the others are trained on, and the "
    "warning names the source",
)
def test_one_broken_source_of_two_is_held_and_the_other_learnt(tmp_path: Path) -> None:
    """Together half of the expected positives still come: one state for both would see nothing."""
    learner = make_towers("mixture", "stream", sources=3)
    for seed in range(60):
        learner.learn(of(0, "batch", seed))
        learner.learn(both(seed, healthy=1.0))
    for seed in range(500, 512):
        learner.learn(both(seed))
    _, broken, sound = learner.guards()["mixture"]
    assert (broken.paused, broken.pauses, sound.paused, sound.pauses) == (True, 1, False, 0)
    history, held, never = learner.left_out()["stream"].paused
    assert held > 5 * 128
    assert (history, never) == (0, 0)
    rows = learner.held()
    assert rows is not None
    np.testing.assert_array_equal(rows[:, 0], np.arange(256) < 128)
    assert learner.learnt()["stream"] == [0, 72 * 128 - held, 72 * 128]

    rows, column = minibatch("stream", 900), 2
    assert learner.columns[column].name == "mixture/memory"
    scores = learner.score(rows)
    assert (scores[:, 0] != scores[:, column]).any(), "the sound one goes on teaching what answers"
    before, only_sound = parts(learner), make_towers("mixture", "stream", sources=3)
    learner.save(tmp_path)
    only_sound.load(tmp_path)
    learner.learn(both(600))
    only_sound.learn(of(2, "stream", 600 + 5_000))
    here, there = parts(learner), parts(only_sound)
    of_models = [n for n in before if n.startswith(("mixture_", "stream_"))]
    assert any((before[name] != here[name]).any() for name in of_models)
    for name in of_models:
        np.testing.assert_allclose(here[name], there[name], rtol=1e-5, atol=1e-7)

    again = make_towers("mixture", "stream", sources=3)
    again.load(tmp_path)
    assert again.guards()["stream"][1].paused
    for seed in range(700, 712):
        again.learn(both(seed, healthy=1.0))
    assert not again.guards()["stream"][1].paused

    for seed in range(500, 512):  # once both are held, memory answers
        silent_too = both(seed)
        again.learn(replace(silent_too, labels=np.zeros_like(silent_too.labels)))
    assert all(state.paused for state in again.guards()["mixture"][1:])
    scores = again.score(rows)
    np.testing.assert_array_equal(scores[:, 0], scores[:, column])


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (("stream", "mixed", "batch_then_stream"), {}),
        (("mixture", "stream"), {"model": {"mixture": {"mode": "paper"}}}),
        (("mixture", "stream"), {"model": {"mixture": {"embeddings": "shared"}}}),
        (("mixture", "batch"), {"train": {"guard": False}}),
        (("batch",), {}),
    ],
)
def test_where_there_is_no_guard(names: tuple[str, ...], more: dict[str, Any]) -> None:
    learner = make_towers(*names, **more)
    warm(learner, 4)
    assert (learner.guards(), learner.left_out()) == ({}, {})
