"""Threads share a classifier: each call learns or predicts its own sample, and none is lost."""

import copy
import pickle
import sys
import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest

from mlpcore import InputError, OnlineMLPClassifier, StreamMLPClassifier

N_TURNS = 400


@pytest.fixture(autouse=True)
def busy():
    """Threads take turns as often as on a busy server."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(*works):
    """Runs functions in threads until the first one returns, whose result is returned."""
    stop, failures, results = threading.Event(), [], []

    def repeat(work):
        try:
            while not stop.is_set():
                work()
        except BaseException as failure:
            failures.append(failure)

    def first():
        try:
            results.append(works[0]())
        except BaseException as failure:
            failures.append(failure)
        stop.set()

    threads = [threading.Thread(target=first)]
    threads += [threading.Thread(target=repeat, args=(work,)) for work in works[1:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return results[0]


def sample(k, make=float):
    """One whose numbers run Python code when they are read, if they are fractions."""
    return {"a": make(k), "b": make(k % 2), "c": make(3 - k)}


def started(n_classes=4):
    model = StreamMLPClassifier((8,))
    for k in range(n_classes * 50):
        model.learn_one(sample(k % n_classes), k % n_classes)
    return model


def weights_of(network):
    return b"".join(weights.tobytes() for weights in (*network.weights, *network.biases))


@pytest.mark.parametrize("make", [float, Fraction])
def test_each_answer_is_that_of_its_own_sample(make):
    model = started()
    samples = [sample(k, make) for k in range(4)]
    wanted = [model.predict_proba_one(x) for x in samples]

    def ask(k):
        def work():
            for _ in range(20):
                assert model.predict_proba_one(samples[k]) == wanted[k]
                assert model.predict_one(samples[k]) == max(wanted[k], key=wanted[k].get)

        return work

    run(lambda: [ask(0)() for _ in range(N_TURNS // 20)], *map(ask, (1, 2, 3)))


def learn(model, n=N_TURNS):
    """Returns the weights after each sample."""
    found = []
    for k in range(n):
        model.learn_one(sample(k % 4, Fraction if k % 8 < 4 else float), k % 4)
        found.append(weights_of(model.network_))
    return found


def test_predictions_and_copies_change_nothing_and_see_whole_samples():
    alone, model, found = learn(started()), started(), set()
    alone_set = {weights_of(started().network_), *alone}
    shared = [
        lambda: model.predict_proba_one(sample(99, Fraction)),
        lambda: found.add(weights_of(pickle.loads(pickle.dumps(model)).network_)),
        lambda: found.add(weights_of(copy.deepcopy(model).network_)),
    ]
    assert run(lambda: learn(model), *shared) == alone
    assert found <= alone_set and len(found) > 1


def test_names_and_labels_of_several_threads_are_all_learnt():
    """The mean of each name is that of its own thread's numbers, and of one that all have."""
    model, n, done = StreamMLPClassifier((4,)), 60, threading.Barrier(4)

    def learner(thread):
        def work():
            for k in range(n):
                model.learn_one({("all",): 1.0, (thread, k % 20): float(k)}, f"{thread} {k % 10}")
            done.wait()

        return work

    def copied():
        twin = pickle.loads(pickle.dumps(model))
        twin.predict_one({("all",): 1})
        twin.learn_one({"new": 1}, "new")
        assert twin.network_.layer_sizes[0] >= len(twin.feature_names_)
        assert twin.network_.layer_sizes[-1] == len(twin.classes_)

    threads = [threading.Thread(target=learner(thread)) for thread in range(3)]
    for thread in threads:
        thread.start()
    run(learner(3), copied, lambda: model.predict_proba_one({("all",): 2, (1, 5): 3}))
    for thread in threads:
        thread.join()
    means = model._for_export().standardisation.means
    assert dict(zip(model.feature_names_, means, strict=True)) == {("all",): 1.0} | {
        (thread, k): k + 20.0 for thread in range(4) for k in range(20)
    }
    assert sorted(model.classes_) == [f"{thread} {k}" for thread in range(4) for k in range(10)]


@pytest.mark.parametrize("place", ["number", "name", "new name"])
def test_a_sample_may_use_the_classifier_that_reads_it(place):
    """One that is learnt inside another one, and a name that would be added inside another one."""
    model = started()

    class Number:
        def __float__(self):
            model.learn_one({"a": 1.0, "inner": 2.0}, "inner label")
            return 1.0

    class Name:
        def __eq__(self, other):
            return self is other

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
    assert len(model.feature_names_) == model.feature_names_.index("later") + 1


def test_a_mapping_that_changes_while_it_is_read_is_read_as_it_was():
    model = started()
    x = sample(1)

    class Number(float):
        def __float__(self):
            for _ in range(3):
                x[object()] = x.pop(next(iter(x)))
            return 2.0

    x["b"] = Number()
    model.learn_one(x, 0)
    assert model.feature_names_ == ["a", "b", "c"]


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
            mlp.partial_fit(X[some], y[some])
            found.append(outputs(mlp))
        return [np.array(each) for each in zip(*found)]

    mlp, seen = started(), []
    wanted = learn(started())
    found = run(lambda: learn(mlp), *[lambda: seen.append(outputs(mlp))] * 3)
    for kind in range(3):
        assert np.array_equal(found[kind], wanted[kind])
        for each in seen:  # apart from the rounding of steps and of whole batches
            assert np.abs(wanted[kind] - each[kind]).max(axis=(1, 2)).min() < 1e-6


# ---- nothing stays of what is refused ----------------------------------------------------


@pytest.mark.parametrize(
    "hidden, w, refusal", [((8,), 1e6, UserWarning), ((2**16,) * 200, 1.0, InputError)]
)
def test_no_name_stays_of_a_sample_that_is_refused(hidden, w, refusal):
    """A warning may be an error, and a network too large for this machine."""
    model = StreamMLPClassifier(hidden, standardise=False, classes=["a"])
    with warnings.catch_warnings(), pytest.raises(refusal):
        warnings.simplefilter("error")
        model.learn_one({"new": 1.0}, "b", w=w)
    assert (model.feature_names_, model.classes_, model.network_) == ([], ["a"], None)
