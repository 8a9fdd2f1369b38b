"""Evaluation: counted by hand, against scikit-learn and SciPy, and on every backend."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mlpcore.backends.counting import count_errors
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from mlpcore import InputError, Network, backends
from mlpcore.evaluation.evaluation import BATCH, Evaluation, evaluate, wilson_interval
from small_runs import BACKENDS, make_dataset


def test_by_hand():
    outputs = np.array(
        [
            [0.9, -1.0, 0.1],  # 0: right
            [0.2, 0.7, 0.3],  # 2: wrong, second guess right
            [1.0, 0.5, 0.5],  # 1: wrong, second guess the first of equals: right
            [0.5, 1.0, 0.5],  # 2: wrong, second guess wrong
            [0.4, 0.4, 0.4],  # 0: right, the first of equals
        ]
    )
    result = Evaluation.of(outputs, np.array([0, 2, 1, 2, 0], np.uint8))
    assert (result.n, result.n_classes, result.errors) == (5, 3, 3)
    assert result.error_rate == 60
    assert result.second_right == 2
    assert result.confusion.tolist() == [[2, 0, 0], [1, 0, 0], [0, 2, 0]]
    wrong = result.misclassified
    assert len(wrong) == 3
    assert wrong.indices.tolist() == [1, 2, 3]
    assert wrong.labels.tolist() == [2, 1, 2]
    assert wrong.guesses.tolist() == [[1, 2], [0, 1], [1, 0]]
    assert wrong.outputs.tolist() == [[0.7, 0.3], [1.0, 0.5], [1.0, 0.5]]


def test_nothing_wrong():
    result = Evaluation.of(np.eye(4), np.arange(4))
    assert (result.errors, result.error_rate, result.second_right) == (0, 0, 0)
    assert result.misclassified.guesses.shape == result.misclassified.outputs.shape == (0, 2)
    assert result.interval[0] == 0


#: Few values, so that equal outputs are common.
samples = st.integers(2, 6).flatmap(
    lambda n_classes: st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.float32, (n, n_classes), elements=st.sampled_from([-1.5, 0, 0.25, 1.5])),
            hnp.arrays(np.uint8, n, elements=st.integers(0, n_classes - 1)),
        )
    )
)


@settings(max_examples=200)
@given(samples)
def test_any_outputs(sample):
    outputs, labels = sample
    result = Evaluation.of(outputs, labels)
    n_classes = outputs.shape[1]
    matrix = confusion_matrix(labels, outputs.argmax(1), labels=range(n_classes))
    assert np.array_equal(result.confusion, matrix)
    assert result.errors == result.n - np.trace(matrix)
    assert result.errors == count_errors(outputs, labels)
    wrong = result.misclassified
    for i, label, guesses, two in zip(wrong.indices, wrong.labels, wrong.guesses, wrong.outputs):
        assert label == labels[i] != guesses[0] == outputs[i].argmax()
        others = [c for c in range(n_classes) if c != guesses[0]]
        assert guesses[1] == max(others, key=lambda c: outputs[i, c])  # the first such
        assert two.tolist() == outputs[i, guesses].tolist()


@settings(max_examples=100)
@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys(counts):
    k, n = counts
    low, high = wilson_interval(k, n)
    expected = binomtest(k, n).proportion_ci(0.95, method="wilson")
    # The two formulas round differently: some 1e-16, of numbers up to 1.
    assert low == pytest.approx(expected.low, abs=1e-14)
    assert high == pytest.approx(expected.high, abs=1e-14)
    assert 0 <= low <= k / n <= high <= 1


def test_the_papers_35_of_10_000():
    outputs = np.zeros((10_000, 10))
    outputs[:, 0] = 1
    result = Evaluation.of(outputs, np.repeat([0, 5], [9965, 35]))
    assert result.error_rate == 0.35
    assert [round(end, 2) for end in result.interval] == [0.25, 0.49]


@pytest.mark.parametrize(
    ("outputs", "labels", "words"),
    [
        (np.zeros((2, 3, 1)), [0, 1], "shape (2, 3, 1)"),
        (np.zeros((2, 1)), [0, 0], "shape (2, 1)"),
        (np.zeros((2, 3), int), [0, 1], "expected real numbers"),
        (np.zeros((0, 3)), np.zeros(0, int), "at least one sample"),
        (np.zeros((2, 3)), [0, 1, 2], "labels: int64 of shape (3,)"),
        (np.zeros((2, 3)), [0.0, 1.0], "labels: float64"),
        (np.zeros((2, 3)), [0, 3], "label 3: expected 0 to 2"),
        (np.zeros((2, 3)), [-1, 0], "label -1"),
        (np.array([[0, math.nan], [1, 0]]), [0, 1], "finite"),
        (np.array([[0, math.inf], [1, 0]]), [0, 1], "finite"),
    ],
)
def test_refusals(outputs, labels, words):
    with pytest.raises(InputError) as caught:
        Evaluation.of(outputs, np.array(labels))
    assert words in str(caught.value)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_network_on_every_backend(name):
    data = make_dataset(n_test=130)
    backend = backends.get(name, threads=2 if name in backends.INSTRUCTION_SETS else None)
    network = Network((35, 9, 3), seed=1)
    result = evaluate(network, data.test_images, data.test_labels, backend)
    inputs = backend.put(data.test_images.reshape(130, 35))
    loaded, labels = backend.load(network), backend.put(data.test_labels)
    assert result.errors == backend.count_errors(loaded, inputs, labels)
    assert 0 < result.errors < 130
    flat = evaluate(network, data.test_images.reshape(130, 35), data.test_labels, backend)
    assert np.array_equal(flat.confusion, result.confusion)


def test_batches_are_put_together(reference):
    rng = np.random.default_rng(0)
    n = 2 * BATCH + 3
    images = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
    network = Network((2, 2), seed=3)
    labels = reference.predict(network, images).argmax(1)
    assert evaluate(network, images, labels, reference).errors == 0
    labels[BATCH] = 1 - labels[BATCH]
    labels[-1] = 1 - labels[-1]
    wrong = evaluate(network, images, labels, reference).misclassified
    assert wrong.indices.tolist() == [BATCH, n - 1]


def test_images_of_another_size(reference):
    network = Network((35, 3), seed=1)
    images = np.zeros((2, 6, 5), np.float32)
    with pytest.raises(InputError, match="images of 6 x 5 pixels: expected 35 pixels"):
        evaluate(network, images, np.array([0, 1]), reference)
    with pytest.raises(InputError, match=r"images: float32 of shape \(2, 30\)"):
        evaluate(network, images.reshape(2, 30), np.array([0, 1]), reference)
    with pytest.raises(InputError, match="images: float64"):
        evaluate(network, np.zeros((2, 7, 5)), np.array([0, 1]), reference)
