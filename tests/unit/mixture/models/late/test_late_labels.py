"""Losses of late labels: against their definitions, and where their gradients vanish."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from support.learning import THREADS

from forebay.mixture.tensorflow_start import start_tensorflow

LOGITS = np.linspace(-9, 9, 37, dtype=np.float32)


@cache
def late_labels() -> Any:
    start_tensorflow(THREADS)
    from forebay.mixture.models.late import late_labels as module

    return module


def gradient(rows: Any, logits: Any) -> Any:
    """The derivative of the summed losses by each row's logit."""
    import tensorflow as tf

    logits = tf.constant(logits, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total = tf.reduce_sum(rows(logits))
    return tape.gradient(total, logits).numpy()


def sigmoid(logits: Any) -> Any:
    return 1 / (1 + np.exp(-logits.astype(np.float64)))


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("q", [0.02, 0.3, 0.9, 0.9999])
def test_the_share_loss_is_the_cross_entropy_of_the_product(label: float, q: float) -> None:
    count = len(LOGITS)
    labels, known = np.full(count, label, np.float32), np.full(count, q, np.float32)
    loss = late_labels().share_loss(labels, known, 0.0)
    product = sigmoid(LOGITS) * np.float32(q)
    wanted = -np.log(product if label else 1 - product)
    np.testing.assert_allclose(loss.rows(LOGITS).numpy(), wanted, rtol=2e-3, atol=1e-5)


def test_the_share_loss_is_least_at_the_complete_label_and_stays_finite_far_from_it() -> None:
    q, truth = 0.4, 0.25
    labels = np.array([1, 0], np.float32)
    loss = late_labels().share_loss(labels, np.full(2, q, np.float32), 0.0)
    slope = gradient(loss.rows, np.full(2, np.log(truth / (1 - truth))))
    observed = truth * q
    assert observed * slope[0] + (1 - observed) * slope[1] == pytest.approx(0, abs=1e-6)
    logits = np.array([-200, -90, 90, 200], np.float32)
    for label in (0.0, 1.0):
        labels = np.full(4, label, np.float32)
        loss = late_labels().share_loss(labels, np.full(4, 0.5, np.float32), 0.0)
        assert np.isfinite(loss.rows(logits).numpy()).all()
        assert np.isfinite(gradient(loss.rows, logits)).all()


def test_no_gradient_reaches_q_which_is_clipped_and_rows_of_small_q_take_no_part() -> None:
    import tensorflow as tf

    module, q = late_labels(), tf.constant([0.5, 1.0, 0.001])
    with tf.GradientTape() as tape:
        tape.watch(q)
        loss = module.share_loss(tf.ones(3), q, 0.0).mean(tf.zeros(3))
    assert tape.gradient(loss, q) is None
    edges = module.share_loss(tf.zeros(3), q, 0.0).rows(tf.fill([3], 20.0)).numpy()
    assert np.isfinite(edges).all()
    module = late_labels()
    labels, q = np.array([0, 0, 1], np.float32), np.array([0.1, 0.2, 0.9], np.float32)
    loss = module.share_loss(labels, q, np.float32(0.2))
    assert loss.part.tolist() == [False, True, True]
    logits = np.array([50.0, 0.3, -0.2], np.float32)
    each = loss.rows(logits).numpy()
    assert float(loss.mean(logits)) == pytest.approx((each[1] + each[2]) / 2)
    assert float(module.share_loss(labels, q * 0, 0.2).mean(logits)) == 0.0


@pytest.mark.parametrize("truth", [0.02, 0.2, 0.6])
def test_fnw_rests_at_the_probability_of_the_complete_label(truth: float) -> None:
    """Whatever part of the positives comes late, as long as each of them comes once."""
    module, logit = late_labels(), np.full(1, np.log(truth / (1 - truth)))
    one, zero, late = np.ones(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32)
    positive = gradient(module.weighted_loss(one).rows, logit)[0]
    negative = gradient(module.weighted_loss(zero).rows, logit)[0]
    after = gradient(module.late_positive_loss(one, late).rows, logit)[0]
    for known in (0.0, 0.3, 1.0):
        fresh = truth * known
        total = fresh * positive + (1 - fresh) * negative + truth * (1 - known) * after
        assert total == pytest.approx(0, abs=1e-6)
    assert positive == pytest.approx(negative + after)


def test_late_positives_are_those_that_the_stream_gave_as_negatives() -> None:
    module, labels = late_labels(), np.array([1, 1, 1, 0, 0], np.float32)
    loss = module.late_positive_loss(labels, np.array([0, 1, np.nan, 0, np.nan], np.float32))
    assert loss.part.numpy().tolist() == [True, False, False, False, False]
    logits = np.full(5, 0.4, np.float32)
    each = loss.rows(logits).numpy()
    assert float(loss.mean(logits)) == pytest.approx(each[0] / 5), "as among other rows"
    plain = module.label_loss(labels)
    both = module.added(plain, loss).rows(logits).numpy()
    late = np.array([each[0], 0, 0, 0, 0])
    np.testing.assert_allclose(both, plain.rows(logits).numpy() + late)
