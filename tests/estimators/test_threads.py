"""Threads share a learner: each call learns or predicts its own sample, and none is lost."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import mlpcore
from mlpcore import OnlineMLPClassifier, StreamMLPClassifier, StreamMLPRegressor


def beside(others, work):
    """The result of a function, while threads call others again and again.

    They take turns as often as on a busy server.
    """
    stop, interval = threading.Event(), sys.getswitchinterval()

    def repeat(other):
        while not stop.is_set():
            other()

    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(len(others)) as pool:
        running = [pool.submit(repeat, other) for other in others]
        try:
            return work()
        finally:
            stop.set()
            sys.setswitchinterval(interval)
            for each in running:
                each.result()


def sample(k, make=float):
    """One whose numbers run Python code when they are read, if they are fractions."""
    return {"a": make(k), "b": make(k % 2), "c": make(3 - k)}


def started(kind=StreamMLPClassifier):
    model = kind((8,))
    for k in range(200):
        model.learn_one(sample(k % 4), k % 4)
    return model


def weights_of(model):
    network = model.network_
    return b"".join(weights.tobytes() for weights in (*network.weights, *network.biases))


KINDS = pytest.mark.parametrize("kind", [StreamMLPClassifier, StreamMLPRegressor])


@KINDS
@pytest.mark.parametrize("make", [float, Fraction])
def test_each_answer_is_that_of_its_own_sample(kind, make):
    model = started(kind)
    samples = [sample(k, make) for k in range(4)]
    answer = getattr(model, "predict_proba_one", model.predict_one)
    wanted = [answer(x) for x in samples]

    def ask(k, times=1):
        for _ in range(times):
            assert answer(samples[k]) == wanted[k]

    beside([lambda k=k: ask(k) for k in (1, 2, 3)], lambda: ask(0, 400))


@KINDS
def test_predictions_and_copies_change_nothing_and_see_whole_samples(kind):
    def learn(model):
        """Returns the weights before and after each sample."""
        found = [weights_of(model)]
        for k in range(300):
            model.learn_one(sample(k % 4, Fraction if k % 8 < 4 else float), k % 4)
            found.append(weights_of(model))
        return found

    alone, model, found = learn(started(kind)), started(kind), set()
    others = [
        lambda: model.predict_one(sample(99, Fraction)),
        lambda: found.add(weights_of(pickle.loads(pickle.dumps(model)))),
        lambda: found.add(weights_of(copy.deepcopy(model))),
    ]
    assert beside(others, lambda: learn(model)) == alone
    assert found and found <= set(alone)


def test_names_and_labels_of_several_threads_are_all_learnt():
    """The scale of each name is that of its own thread's numbers, and of one that all have."""
    model = StreamMLPClassifier((4,))

    def learn(thread):
        for k in range(60):
            x = {("all",): 1.0, (thread, k % 20): float(k)}
            model.learn_one(x, f"{thread} {k % 10}")

    def copied():
        twin = pickle.loads(pickle.dumps(model))
        twin.learn_one({"new": 1}, "new")
        assert twin.network_.layer_sizes[0] >= len(twin.feature_names_)
        assert twin.network_.layer_sizes[-1] == len(twin.classes_)

    others = [copied, lambda: model.predict_proba_one({("all",): 2, (1, 5): 3})]
    with ThreadPoolExecutor(4) as pool:
        beside(others, lambda: list(pool.map(learn, range(4))))
    scale = model._for_export().standardisation
    found = dict(zip(model.feature_names_, zip(scale.means, scale.factors, strict=True)))
    assert found.pop(("all",)) == (1.0, 0.0)
    squares = {(thread, k): (k**2 + (k + 20) ** 2 + (k + 40) ** 2) / 3 for thread, k in found}
    assert len(found) == 80 and all(mean == 0 for mean, _ in found.values())
    for name, square in squares.items():
        assert found[name][1] == pytest.approx(square**-0.5)
    assert sorted(model.classes_) == [f"{thread} {k}" for thread in range(4) for k in range(10)]


def test_predictions_beside_partial_fit_are_those_of_a_network_between_two_samples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 200)), np.arange(40) % 4

    def started():
        mlp = OnlineMLPClassifier((100,), learning_rate_init=0.003, random_state=0)
        return mlp.partial_fit(X[:1], y[:1], classes=range(4))

    def outputs(mlp):
        twin = pickle.loads(pickle.dumps(mlp))
        return [mlp.predict_proba(X[:1]), mlp.predict_proba(X), twin.predict_proba(X)]

    def learn(mlp):
        found = [outputs(mlp)]
        for turn in range(60):
            some = slice(None) if turn % 10 == 9 else [turn % 40]
            found.append(outputs(mlp.partial_fit(X[some], y[some])))
        return [np.array(each) for each in zip(*found)]

    mlp, seen, wanted = started(), [], learn(started())
    found = beside([lambda: seen.append(outputs(mlp))] * 3, lambda: learn(mlp))
    for kind in range(3):
        assert np.array_equal(found[kind], wanted[kind])
        for each in seen:  # apart from the rounding of steps and of whole batches
            assert np.abs(wanted[kind] - each[kind]).max(axis=(1, 2)).min() < 1e-6


@KINDS
@pytest.mark.parametrize("place", ["number", "name", "new name"])
def test_a_sample_may_use_the_learner_that_reads_it(kind, place):
    """One that is learnt inside another one; but no name is added inside another one."""
    model = started(kind)

    class Number:
        def __float__(self):
            model.learn_one({"a": 1.0, "inner": 2.0}, 4)
            return 1.0

    class Name:
        def __hash__(self):
            model.predict_one(sample(1))
            return 1

        def __str__(self):
            model.learn_one({"inner" if place == "new name" else "a": 1.0}, 0)
            return ""

    if place == "new name":
        with pytest.raises(RuntimeError, match="just learning it"):
            model.learn_one({Name(): 1.0}, 0)
    else:
        model.learn_one({"a": Number()} if place == "number" else {Name(): 1.0}, 0)
        assert len(model.feature_names_) == 4
    model.learn_one({"later": 1}, 1)
    assert model.feature_names_[-1] == "later"


def test_no_name_stays_of_a_sample_whose_network_is_too_large():
    model = StreamMLPClassifier((2**16,) * 200, classes=["a"])
    with pytest.raises(mlpcore.InputError):
        model.learn_one({"new": 1.0}, "b")
    assert (model.feature_names_, model.classes_, model.network_) == ([], ["a"], None)
