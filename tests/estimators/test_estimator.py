"""The classifier in scikit-learn's manner: its conventions, and the same training as elsewhere."""

import copy
import doctest
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import cpu_count, parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from mlpcore import DeformationParameters, InputError, OnlineMLPClassifier, backends, deformation
from mlpcore.cpu import available_cores
from mlpcore.data.scaling import normalise
from mlpcore.deformation.deform import IDENTITY
from mlpcore.estimators import classifier as estimator_module
from mlpcore.estimators.classifier import FIRST_PARTIAL_EPOCH, WEIGHTS_PER_THREAD
from mlpcore.evaluation.probabilities import nearest_distributions
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.training.trainer import Diverged, Trainer
from small_runs import BACKENDS, C_BACKENDS, make_config, make_dataset, make_pixels, same_weights

DATA = make_dataset()
X = DATA.train_images.reshape(230, 35)
Y = DATA.train_labels
SHAPE = DATA.image_shape
DEFORMATION = DeformationParameters(6.0, 4.0, 5.0, 5.0, similar_labels=(1,))


def make_mlp(**changes):
    """A quick one, with the settings of `make_config` but for the deformation."""
    settings = {"learning_rate_init": 0.01, "max_iter": 3, "random_state": 5}
    return OnlineMLPClassifier((9, 6), **settings | changes)


def same(a, b):
    return same_weights(a.network_, b.network_)


# scikit-learn's own checks: none is expected to fail


@parametrize_with_checks([OnlineMLPClassifier()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# The same training as everywhere


@pytest.mark.parametrize("parameters", [None, DEFORMATION])
def test_fit_is_the_trainers_run(parameters):
    mlp = make_mlp(deformation=parameters, image_shape=SHAPE).fit(X, Y)
    config = make_config(deformation=parameters or IDENTITY)
    trainer = Trainer(config, DATA, backends.get("cpu"))
    trainer.run()
    assert same_weights(mlp.network_, trainer.state.network)
    assert mlp.loss_curve_ == [metrics.loss for metrics in trainer.state.history]
    assert mlp.loss_ == mlp.loss_curve_[-1]
    assert mlp.n_iter_ == 3


def test_fit_with_other_targets_and_rates_is_the_trainers_run():
    mlp = make_mlp(target=1.5, learning_rate_ratio=2).fit(X, Y)
    config = make_config(deformation=IDENTITY, target=1.5, learning_rate_ratio=2.0)
    trainer = Trainer(config, DATA, backends.get("cpu"))
    trainer.run()
    assert same_weights(mlp.network_, trainer.state.network)
    assert mlp.target_ == 1.5


def test_it_learns():
    mlp = make_mlp(max_iter=8).fit(X, Y)
    assert mlp.score(DATA.test_images.reshape(60, 35), DATA.test_labels) > 0.95
    assert mlp.loss_curve_[-1] < mlp.loss_curve_[0] / 2


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_trains_and_predicts(name):
    """As the oracle does, to 1e-4: 40 steps, each rounding outputs of 1 some ten times."""
    fitted = [
        make_mlp(backend=each, max_iter=1, deformation=DEFORMATION, image_shape=SHAPE)
        .fit(X[:20], Y[:20])
        .partial_fit(X[20:40], Y[20:40])
        for each in ("reference", name)
    ]
    expected, outputs = (mlp.decision_function(X[:50]) for mlp in fitted)
    np.testing.assert_allclose(outputs, expected, atol=1e-4)


@pytest.mark.parametrize("name", C_BACKENDS)
@pytest.mark.parametrize("schedule", backends.SCHEDULES)
def test_same_bits_for_any_number_of_threads(name, schedule):
    fitted = [
        OnlineMLPClassifier(
            (70, 40),
            max_iter=2,
            random_state=3,
            deformation=DEFORMATION,
            image_shape=SHAPE,
            backend=name,
            schedule=schedule,
            threads=threads,
        )
        .fit(X, Y)
        .partial_fit(X[:50], Y[:50])
        for threads in (1, 2, 3)
    ]
    assert same(fitted[0], fitted[1])
    assert same(fitted[0], fitted[2])


def test_random_states():
    assert same(make_mlp(random_state=1).fit(X, Y), make_mlp(random_state=1).fit(X, Y))
    assert not same(make_mlp(random_state=1).fit(X, Y), make_mlp(random_state=2).fit(X, Y))
    drawn = [make_mlp(random_state=np.random.RandomState(7)).fit(X, Y) for _ in range(2)]
    assert same(*drawn)
    assert not same(make_mlp(random_state=None).fit(X, Y), make_mlp(random_state=None).fit(X, Y))
    make_mlp(random_state=2**64 - 1).fit(X, Y)


def test_float64_is_converted():
    assert same(make_mlp().fit(X, Y), make_mlp().fit(X.astype(np.float64), Y))


@pytest.mark.parametrize(
    ("hidden", "sizes"),
    [(7, (7,)), ([7, 5], (7, 5)), (np.array([7, 5]), (7, 5)), ((), ()), ("7,5", (7, 5))],
)
def test_hidden_layers(hidden, sizes):
    mlp = OnlineMLPClassifier(hidden, max_iter=1).fit(X, Y)
    assert mlp.network_.layer_sizes == (35, *sizes, 3)


def test_weights_in_scikit_learns_orientation():
    mlp = make_mlp().fit(X, Y)
    states = X.astype(np.float64)
    for weights, biases in zip(mlp.coefs_, mlp.intercepts_):
        states = A * np.tanh(B * (states @ weights + biases))
    assert [w.shape for w in mlp.coefs_] == [(35, 9), (9, 6), (6, 3)]
    # Three layers of sums of up to 35 products in float32.
    np.testing.assert_allclose(mlp.decision_function(X), states, atol=1e-5)
    mlp.coefs_[2][...] = 0
    mlp.intercepts_[2][...] = (0, 1, 0)
    assert set(mlp.predict(X)) == {1}


# Going on


def test_warm_start_goes_on_as_if_it_had_not_stopped():
    long = make_mlp(max_iter=5, deformation=DEFORMATION, image_shape=SHAPE).fit(X, Y)
    parts = make_mlp(max_iter=2, deformation=DEFORMATION, image_shape=SHAPE, warm_start=True)
    parts.fit(X, Y)
    before = [weights.copy() for weights in parts.coefs_]
    parts.set_params(max_iter=3).fit(X, Y)
    assert parts.n_iter_ == 5
    # The rates of the epochs may differ in the last of float64's bits.
    assert parts.loss_curve_ == pytest.approx(long.loss_curve_, rel=1e-5)
    for a, b in zip(long.coefs_, parts.coefs_):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert not np.allclose(before[0], parts.coefs_[0], atol=1e-4)


def test_without_warm_start_fit_begins_anew():
    mlp = make_mlp().fit(X, Y)
    assert same(make_mlp().fit(X, Y), mlp.fit(X, Y))
    assert mlp.n_iter_ == 3


def test_warm_start_wants_the_same_classes_and_layers():
    mlp = make_mlp(warm_start=True).fit(X, Y)
    with pytest.raises(InputError, match=r"^y holds 3: expected one of \[0, 1, 2\]$"):
        mlp.fit(X, Y + 1)
    with pytest.raises(ValueError, match="features"):
        mlp.fit(X[:, :10], Y)
    with pytest.raises(InputError, match=r"\(35, 9, 6, 3\), expected \(35, 4, 3\)"):
        mlp.set_params(hidden_layer_sizes=4).fit(X, Y)
    assert mlp.n_iter_ == 3


def test_partial_fit_is_one_pass_in_the_order_given():
    mlp = make_mlp().partial_fit(X, Y, classes=[0, 1, 2])
    network, backend = Network((35, 9, 6, 3), 5), backends.get("cpu", 1)
    order = np.arange(230, dtype=np.int32)
    result = backend.train(network, X, Y, order, 0.01)
    assert same_weights(mlp.network_, network)
    assert mlp.loss_curve_ == [result.loss / 230]
    assert mlp.n_iter_ == 1


def test_partial_fit_with_other_targets_and_rates():
    mlp = make_mlp(target=1.5, learning_rate_ratio=2).partial_fit(X, Y, classes=[0, 1, 2])
    network, backend = Network((35, 9, 6, 3), 5), backends.get("cpu", 1)
    order = np.arange(230, dtype=np.int32)
    backend.train(network, X, Y, order, [0.02, 0.01, 0.005], target=1.5)
    assert same_weights(mlp.network_, network)
    assert mlp.target_ == 1.5


def test_partial_fit_of_parts_is_partial_fit_of_the_whole():
    whole = make_mlp(schedule="immediate").partial_fit(X, Y, classes=[0, 1, 2])
    parts = make_mlp(schedule="immediate").partial_fit(X[:1], Y[:1], classes=[2, 1, 0])
    for begin, end in ((1, 2), (2, 100), (100, 230)):
        parts.partial_fit(X[begin:end], Y[begin:end])
    assert same(whole, parts)
    assert parts.n_iter_ == 4
    assert np.average(parts.loss_curve_, weights=[1, 1, 98, 130]) == pytest.approx(whole.loss_)


def test_partial_fit_deforms_every_pass_anew():
    settings = {"deformation": DEFORMATION, "image_shape": SHAPE}
    mlp = make_mlp(**settings)
    network, backend = Network((35, 9, 6, 3), 5), backends.get("cpu", 1)
    for i in range(2):
        mlp.partial_fit(X, Y, classes=[0, 1, 2])
        shown = deformation.deform(
            DATA.train_images, Y, DEFORMATION, 5, FIRST_PARTIAL_EPOCH + i, backend
        )
        backend.train(network, shown.reshape(X.shape), Y, np.arange(230, dtype=np.int32), 0.01)
    assert same_weights(mlp.network_, network)


def test_partial_fit_goes_on_after_fit_and_fit_after_it():
    mlp = make_mlp(warm_start=True).fit(X, Y).partial_fit(X, Y)
    assert mlp.n_iter_ == 4
    mlp.fit(X, Y)
    assert mlp.n_iter_ == 7
    assert mlp.score(X, Y) > 0.9


def test_classes_of_partial_fit():
    mlp = make_mlp()
    with pytest.raises(InputError, match=r"^classes None: expected all labels in the first call"):
        mlp.partial_fit(X, Y)
    with pytest.raises(InputError, match=r"^classes holds one class, 1: expected 2 or more"):
        mlp.partial_fit(X, Y, classes=[1])
    with pytest.raises(InputError, match=r"^y holds 2: expected one of \[0, 1\]$"):
        mlp.partial_fit(X, Y, classes=[0, 1])
    assert not hasattr(mlp, "network_")
    mlp.partial_fit(X[:1], Y[:1], classes=[0, 1, 2, 5])
    before = mlp.network_.copy()
    with pytest.raises(InputError, match=r"^classes \[0, 1\]: .* \[0, 1, 2, 5\]$"):
        mlp.partial_fit(X, Y, classes=[0, 1])
    for y, unknown in ((Y + 1, "3"), (Y.astype(str), "'0'"), (np.array(["a"] * 230), "'a'")):
        with pytest.raises(InputError, match=f"^y holds {unknown}: expected one of"):
            mlp.partial_fit(X, y)
    assert same_weights(mlp.network_, before)
    mlp.partial_fit(X, Y, classes=[5, 2, 1, 0])
    assert mlp.predict(X).max() <= 2


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        ["seven", "nine", "one"],
        [-7, -1, 12],
        [0.0, 1.0, 2.0],
        [False, True],
        ["no", "yes"],
        [300, 7],
    ],
)
def test_any_labels(labels):
    """The same network as with labels from 0, its guesses in the labels given."""
    labels = np.array(labels)
    codes = Y % len(labels)
    mlp = make_mlp(max_iter=12).fit(X, labels[codes])
    assert mlp.classes_.tolist() == sorted(labels.tolist())
    guesses = mlp.predict(X)
    assert guesses.dtype == labels.dtype
    assert np.mean(guesses == labels[codes]) > 0.9
    assert mlp.predict_proba(X).shape == (230, len(labels))
    assert mlp.score(X, labels[codes]) == np.mean(guesses == labels[codes])


def test_up_to_256_classes():
    x = np.random.default_rng(0).uniform(-1, 1, (600, 4))
    y = np.arange(600) % 256
    assert make_mlp(max_iter=1).fit(x, y).predict_proba(x).shape == (600, 256)
    with pytest.raises(InputError, match=r"^y holds 257 classes: expected 256 or fewer$"):
        make_mlp(max_iter=1).fit(x, np.arange(600) % 257)
    with pytest.raises(InputError, match=r"^classes holds 300 classes: expected 256 or fewer$"):
        make_mlp().partial_fit(x, y, classes=range(300))


@pytest.mark.parametrize("name", ["1", 1, "one"])
def test_similar_labels_are_those_of_y(name):
    """In the network's numbers label 1 is 2 here; as text it is still the digit 1."""
    labels = np.array([{"1": "0", 1: 0, "one": "a"}[name], {"1": "5", 1: -5, "one": "z"}[name]])
    y = np.where(
        Y == 1, np.array(name, dtype=labels.dtype if name != "one" else "<U3"), labels[Y // 2]
    )
    similar = ("one",) if name == "one" else (1, 7)
    given = DeformationParameters(6.0, 4.0, 40.0, 5.0, similar_labels=similar)
    mlp = make_mlp(deformation=given, image_shape=SHAPE).fit(X, y)
    codes = np.searchsorted(mlp.classes_, y).astype(np.uint8)
    similar_code = int(np.flatnonzero(mlp.classes_ == name)[0])
    expected = DeformationParameters(6.0, 4.0, 40.0, 5.0, similar_labels=(similar_code,))
    network, backend = Network((35, 9, 6, 3), 5), backends.get("cpu", 1)
    config = make_config(deformation=expected)
    for epoch in range(3):
        shown = deformation.deform(DATA.train_images, codes, expected, 5, epoch, backend)
        order = backend.permutation(230, 5, epoch)
        rate = config.learning_rate_at(epoch)
        backend.train(network, shown.reshape(X.shape), codes, order, rate)
    assert same_weights(mlp.network_, network)


# Probabilities


@given(
    st.integers(2, 12).flatmap(
        lambda k: st.tuples(
            st.lists(st.floats(-0.36, 1.36), min_size=k, max_size=k),
            st.lists(st.floats(1e-3, 1), min_size=k, max_size=k),
        )
    )
)
def test_the_nearest_probabilities(drawn):
    point, other = np.array(drawn[0]), np.array(drawn[1])
    (nearest,) = nearest_distributions(point[None])
    # Sums of 12 numbers of about 1 in float64.
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1, abs=1e-14)
    assert nearest[point.argmax()] == nearest.max()
    other /= other.sum()
    corners = np.eye(len(point))
    for candidate in (other, *corners, *(0.9 * nearest + 0.1 * corners)):
        gained = np.sum((point - nearest) ** 2) - np.sum((point - candidate) ** 2)
        assert gained <= 1e-14
        # What it is for: never farther from the truth than the outputs were.
        assert np.sum((nearest - candidate) ** 2) <= np.sum((point - candidate) ** 2) + 1e-14


def test_nearest_probabilities_by_hand():
    points = [[0.5, 0.3, 0.2], [1.3, 0.0, -0.3], [0.9, 0.7, -0.2], [-0.3, -0.3, -0.3], [1.3] * 3]
    expected = [[0.5, 0.3, 0.2], [1, 0, 0], [0.6, 0.4, 0], [1 / 3] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(nearest_distributions(np.array(points)), expected, atol=1e-15)


@pytest.mark.parametrize("target", [1.0, 1.5])
def test_probabilities_estimate_the_posterior(target):
    """Two values of x, of which each has one class with probability 0.8 and 0.3.

    4,000 samples estimate those to 4 standard errors of 0.015 at most, and the last of the
    weights' random steps are worth another 0.02.
    """
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (4000, 1))
    y = rng.uniform(size=4000) < np.where(x[:, 0] < 0, 0.8, 0.3)
    mlp = OnlineMLPClassifier(
        (8,),
        learning_rate_init=0.02,
        learning_rate_end=1e-3,
        target=target,
        max_iter=20,
        random_state=0,
    )
    found = mlp.fit(x, y).set_params(target=0.7).predict_proba([[-1.0], [1.0]])
    np.testing.assert_allclose(found, [[0.2, 0.8], [0.7, 0.3]], atol=0.08)


@pytest.mark.parametrize("bias", [(-99, -99, -99), (99, 99, 99), (99, 99, -99), (0, 0, 0)])
def test_probabilities_of_extreme_outputs(bias):
    mlp = make_mlp().fit(X, Y)
    mlp.coefs_[-1][...] = 0
    mlp.intercepts_[-1][...] = bias
    probabilities = mlp.predict_proba(X)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)  # float32
    assert probabilities.min() >= 0
    assert np.array_equal(mlp.classes_[probabilities.argmax(axis=1)], mlp.predict(X))


def test_guesses_scores_and_probabilities_agree():
    for y, n in ((Y, 3), (Y % 2, 2)):
        mlp = make_mlp(max_iter=1).fit(X, y)
        scores, guesses = mlp.decision_function(X), mlp.predict(X)
        assert 0 < np.mean(guesses == y) < 1  # so that both sides occur
        assert scores.shape == ((230, 3) if n == 3 else (230,))
        assert np.array_equal(scores.argmax(axis=1) if n == 3 else scores > 0, guesses)
        assert np.array_equal(mlp.predict_proba(X).argmax(axis=1), guesses)


# Among scikit-learn's tools


def test_clones_copies_and_pickles():
    mlp = make_mlp(deformation=DEFORMATION, image_shape=SHAPE).fit(X, Y)
    assert clone(mlp).get_params() == mlp.get_params()
    assert not hasattr(clone(mlp), "network_")
    expected = mlp.predict_proba(X)
    for twin in (copy.deepcopy(mlp), pickle.loads(pickle.dumps(mlp))):
        assert np.array_equal(twin.predict_proba(X), expected)
        twin.partial_fit(X, Y)
        assert not same(twin, mlp)
    assert np.array_equal(mlp.predict_proba(X), expected)
    assert same(
        copy.deepcopy(mlp).partial_fit(X, Y), pickle.loads(pickle.dumps(mlp)).partial_fit(X, Y)
    )


def test_pipeline_with_a_search_in_two_processes():
    pixels, labels = make_pixels(120, 0)
    pipeline = make_pipeline(FunctionTransformer(normalise), make_mlp(image_shape=SHAPE))
    grid = {
        "onlinemlpclassifier__max_iter": [1, 9],
        "onlinemlpclassifier__deformation": [None, DEFORMATION],
    }
    pixels = pixels.reshape(120, 35)
    searches = [
        GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(pixels, labels) for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert np.array_equal(*scores)
    assert searches[1].best_params_["onlinemlpclassifier__max_iter"] == 9
    assert searches[1].score(pixels, labels) > 0.9


def count_threads(estimator, X, y):
    """A scorer that runs where training has run."""
    return estimator._get_backend(Network((1000, 3000, 1000))).threads


@pytest.mark.parametrize(
    ("context", "n_jobs", "threads"),
    [
        ("loky", 2, max(1, cpu_count() // 2)),
        ("threading", 2, 1),
        ("loky", None, available_cores()),
    ],
)
def test_a_search_does_not_take_more_threads_than_cores(context, n_jobs, threads, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(estimator_module, "WEIGHTS_PER_THREAD", 1)
    with parallel_config(context):
        search = GridSearchCV(
            make_mlp(), {"max_iter": [1, 2]}, cv=2, n_jobs=n_jobs, scoring=count_threads
        ).fit(X, Y)
    assert set(search.cv_results_["mean_test_score"]) == {min(threads, available_cores())}


def test_small_networks_take_one_thread_and_explicit_threads_are_taken(monkeypatch):
    monkeypatch.setattr("mlpcore.estimators.parameters.cores_beside_others", lambda: 8)
    mlp = make_mlp()
    assert mlp._get_backend(Network((WEIGHTS_PER_THREAD - 2, 1))).threads == 1
    assert mlp._get_backend(Network((3 * WEIGHTS_PER_THREAD, 1))).threads == 3
    assert mlp._get_backend(Network((3 * WEIGHTS_PER_THREAD, 3))).threads == 8
    assert make_mlp(threads=5)._get_backend(Network((3, 2))).threads == 5


def test_importing_mlpcore_does_not_import_scikit_learn():
    code = "import sys, mlpcore; assert 'sklearn' not in sys.modules; mlpcore.OnlineMLPClassifier"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_docstring_is_right():
    tried = doctest.testmod(estimator_module)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_verbose_prints_a_line_for_each_epoch(capsys):
    make_mlp().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    make_mlp(verbose=True).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:3] == ["epoch", "rate", "loss"]
    assert [line.split()[0] for line in lines[1:]] == ["1/3", "2/3", "3/3"]
    assert all(" %         -  " in line for line in lines[1:])  # there is no test set


# Bad input


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_layer_sizes": (5, 0)}, "hidden_layer_sizes 0"),
        ({"hidden_layer_sizes": None}, "hidden_layer_sizes None"),
        ({"hidden_layer_sizes": 2.5}, "hidden_layer_sizes 2.5"),
        ({"hidden_layer_sizes": "net6"}, "architecture 'net6'"),
        ({"max_iter": 0}, "max_iter 0"),
        ({"max_iter": 1.5}, "max_iter 1.5"),
        ({"learning_rate_init": -1}, "learning_rate_init -1"),
        ({"learning_rate_init": None}, "learning_rate_init None"),
        ({"learning_rate_end": 0}, "learning_rate_end 0"),
        ({"learning_rate_ratio": 0}, "learning_rate_ratio 0"),
        ({"target": 1.8}, "target 1.8"),
        ({"target": None}, "target None"),
        ({"random_state": -1}, "random_state -1"),
        ({"random_state": "x"}, "random_state 'x'"),
        ({"deformation": True}, "deformation True"),
        (
            {"deformation": DeformationParameters(similar_labels=7), "image_shape": SHAPE},
            "similar_labels 7",
        ),
        ({"image_shape": (5, 5)}, "image_shape 5 x 5: 25 pixels"),
        ({"image_shape": 35}, "image_shape 35"),
        ({"image_shape": (5, -7)}, "image_shape: width -7"),
        ({"deformation": DEFORMATION}, "image_shape None: 35 features make no square"),
        ({"backend": "mmx"}, "backend 'mmx'"),
        ({"backend": None}, "backend None"),
        ({"schedule": "late"}, "schedule 'late'"),
        ({"threads": 0}, "threads 0"),
        ({"threads": "2"}, "threads '2'"),
    ],
)
def test_parameters_that_cannot_be(changes, words):
    for method in ("fit", "partial_fit"):
        mlp = make_mlp().set_params(**changes)
        with pytest.raises(InputError) as caught:
            mlp.fit(X, Y) if method == "fit" else mlp.partial_fit(X, Y, classes=[0, 1, 2])
        message = str(caught.value)
        assert message.startswith(words)
        assert "expected" in message
        assert "\n" not in message
        assert not hasattr(mlp, "network_")


def test_images_for_a_deformation_lie_within_one():
    mlp = make_mlp(deformation=DEFORMATION, image_shape=SHAPE)
    with pytest.raises(InputError, match=r"^X holds -254.*: expected images in \[-1, 1\]"):
        mlp.fit(-254 * np.abs(X), Y)
    mlp.fit(np.nextafter(X, 2 * X), Y)


def test_values_whose_sums_overflow():
    mlp = make_mlp().fit(X, Y)
    far = np.full((1, 35), 3e38, np.float32)
    mlp.coefs_[0][...] = 1
    mlp.coefs_[0][::2] = -1
    with pytest.raises(InputError, match=r"^X holds 3e\+38, with which sums overflow"):
        mlp.predict(far)


def test_a_failed_fit_keeps_the_fit_before():
    mlp = make_mlp().fit(X, Y)
    before = mlp.network_.copy()
    mlp.set_params(learning_rate_init=3e38, learning_rate_end=3e38)
    for warm_start in (False, True):
        with np.errstate(all="ignore"), pytest.raises(Diverged, match="epoch"):
            mlp.set_params(warm_start=warm_start).fit(X, Y)
    mlp.set_params(learning_rate_init=0.01, learning_rate_end=None, warm_start=False)
    with pytest.raises(InputError, match="one class"):
        mlp.fit(X[:, :4], np.zeros(len(X)))
    assert same_weights(mlp.network_, before)
    assert mlp.n_iter_ == 3
    assert mlp.n_features_in_ == X.shape[1]
    assert len(mlp.predict(X)) == len(X)


def test_a_failed_first_fit_leaves_nothing():
    mlp = make_mlp()
    with pytest.raises(InputError, match="one class"):
        mlp.fit(X, np.zeros(len(X)))
    with pytest.raises(InputError, match="y holds 2"):
        mlp.partial_fit(X, np.full(len(X), 2), classes=[0, 1])
    assert not hasattr(mlp, "n_features_in_")


def test_a_partial_fit_that_diverges_leaves_no_network():
    mlp = make_mlp().fit(X, Y)
    mlp.set_params(learning_rate_init=3e38)
    with np.errstate(all="ignore"), pytest.raises(Diverged, match=r"learning rate 3e\+38"):
        mlp.partial_fit(X, Y)
    with pytest.raises(NotFittedError):
        mlp.predict(X)
    mlp.set_params(learning_rate_init=0.01).partial_fit(X, Y, classes=[0, 1, 2])
    assert math.isfinite(mlp.loss_)


def test_before_fit():
    mlp = make_mlp()
    for name in ("coefs_", "intercepts_", "loss_", "n_iter_"):
        assert not hasattr(mlp, name)
