"""The classifier: scikit-learn's conventions, and the same training as everywhere else."""

import re
import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from msgspec import structs
from numpy.random import RandomState
from scipy.sparse import csc_array
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import scale
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

import mlpcore
from mlpcore import OnlineMLPClassifier, OnlineMLPRegressor, backends, deformation
from mlpcore.deformation.parameters import IDENTITY
from mlpcore.deformation.values import background_of
from mlpcore.estimators import base
from mlpcore.estimators.base import FIRST_PARTIAL_EPOCH, WEIGHTS_PER_THREAD
from mlpcore.estimators.validation import Samples
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.training.trainer import Observer, Trainer
from small_classifiers import DEFORMATION, DEFORMED, MODERN, SHORT, X, Y, make_mlp, same
from small_runs import DATA, make_config, same_weights

OTHER_RATES = {"target": 1.5, "learning_rate_ratio": 2.0}

pytestmark = SHORT

CHECKED = [
    OnlineMLPClassifier(),
    OnlineMLPClassifier(alpha=0.01, early_stopping=True, class_weight="balanced"),
    OnlineMLPRegressor(),  # which has partial_fit
    OnlineMLPRegressor(early_stopping=True, warm_start=True),
]


def not_passed(mlp):
    """A sample of weight 2 takes one step twice as long, not two steps at two times."""
    check, kinds = "check_sample_weight_equivalence_on_{}_data", ("dense", "sparse")
    failed = {check.format(kind): "on-line steps have an order" for kind in kinds}
    if mlp.warm_start:
        names = "check_supervised_y_2d", "check_classifiers_multilabel_representation_invariance"
        failed |= dict.fromkeys(names, "its second fit continues")
    return failed


@parametrize_with_checks(CHECKED, expected_failed_checks=not_passed)
@pytest.mark.filterwarnings("ignore:X is far outside", "ignore:The network answers")  # some data
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "settings",
    [
        *({"alpha": alpha} for alpha in (0.1, "auto")),
        *(OTHER_RATES, DEFORMED, DEFORMED | {"alpha": "auto"}),
        MODERN | {"decay": "linear", "warm_up": 300},
    ],
)
def test_fit_is_the_trainers_run(settings):
    mlp = make_mlp(**settings).fit(X, Y)
    changes = {name: value for name, value in settings.items() if name != "image_shape"}
    alpha = changes.pop("alpha", 0.0)
    if alpha == "auto":
        alpha = 0 if "deformation" in changes else 5 / len(X)
    config = make_config(**{"deformation": IDENTITY} | changes)
    trainer = Trainer(config, DATA, backends.get("cpu"), weight_decay=alpha)
    trainer.run()
    assert same_weights(mlp.network_, trainer.state.network)
    assert mlp.loss_curve_ == [metrics.loss for metrics in trainer.state.history]
    assert (mlp.loss_, mlp.n_iter_) == (mlp.loss_curve_[-1], 3)
    assert mlp.target_ == config.target


@pytest.mark.parametrize("weights", [None, np.arange(230, dtype=np.float32) % 3])
@pytest.mark.parametrize(
    "settings",
    [{"alpha": "auto"}, {"alpha": 0.5}, OTHER_RATES, DEFORMED, {"decay": "linear", "warm_up": 999}],
)
def test_partial_fit_is_a_pass_in_the_order_given(settings, weights):
    """A weight of a sample is a factor of its learning rate."""
    mlp, total = make_mlp(**settings), 230 if weights is None else weights.sum()
    network, backend, n_before = Network((35, 9, 6, 3), 5), backends.get("cpu", 1), 0
    rates = [0.02, 0.01, 0.005] if settings is OTHER_RATES else 0.01
    losses = []
    if settings is DEFORMED:  # after a fit of three epochs
        network, n_before = mlp.fit(X, Y).network_.copy(), 3
    for epoch in range(FIRST_PARTIAL_EPOCH + n_before, FIRST_PARTIAL_EPOCH + n_before + 2):
        mlp.partial_fit(X, Y, [0, 1, 2], weights)
        images, order = DATA.train_images, np.arange(230, dtype=np.int32)
        if settings is DEFORMED:
            drawing, around = (DEFORMATION, 5, epoch, backend), background_of(images)
            images = deformation.deform(images, Y, *drawing, background=around)
        target, inputs = settings.get("target", 1.0), images.reshape(X.shape)
        more = (None, target, weights, 0.5 * (settings.get("alpha") == 0.5))
        losses.append(backend.train(network, inputs, Y, order, rates, *more).loss / total)
    assert same_weights(mlp.network_, network)
    assert mlp.loss_curve_[n_before:] == pytest.approx(losses, rel=1e-5)  # kept to six digits
    assert mlp.target_ == target


@pytest.mark.parametrize("settings, outputs", [({}, "tanh"), (MODERN, "softmax")])
def test_attributes_of_the_network(settings, outputs):
    """Reading them leaves a stream its stepper. Logarithms are those of the probabilities."""
    mlp = make_mlp(**settings)
    assert not hasattr(mlp, "n_layers_") and not hasattr(mlp, "best_loss_")
    mlp.partial_fit(X[:9], Y[:9], [0, 1, 2])
    steps = mlp._cache
    assert (mlp.n_layers_, mlp.n_outputs_, mlp.out_activation_, mlp.t_) == (4, 3, outputs, 9)
    assert mlp._cache is steps
    assert np.array_equal(mlp.predict_log_proba(X), np.log(mlp.predict_proba(X)))


def test_warm_start_continues_as_if_it_had_not_stopped():
    long = make_mlp(max_iter=5, **DEFORMED).fit(X, Y)
    parts = make_mlp(max_iter=2, warm_start=True, **DEFORMED).fit(X, Y)
    parts.set_params(max_iter=3).fit(X, Y)
    assert parts.n_iter_ == 5
    # The rates of the epochs may differ in the last bits of float64.
    assert parts.loss_curve_ == pytest.approx(long.loss_curve_, rel=1e-5)
    for a, b in zip(long.coefs_, parts.coefs_):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert parts.partial_fit(X, Y).fit(X, Y).n_iter_ == 9


def started(**changes):
    """A classifier that has taken its first step."""
    return make_mlp(**changes).partial_fit(X[:1], Y[:1], classes=[0, 1, 2])


def test_weights_that_are_written_and_parameters_that_change_count_in_the_next_step(monkeypatch):
    """Of the losses only the last ones are kept."""
    monkeypatch.setattr(base, "LONGEST_CURVE", 1)
    written, slow, fast = started(), started(), started().set_params(learning_rate_init=0.5)
    written.coefs_[0][:] = 0
    written.coefs_[1][:] = 0  # so the layer below learns nothing
    before = started().coefs_[2]
    for mlp in (written, slow, fast):
        mlp.partial_fit(X[1:2], Y[1:2])
    assert not written.coefs_[0].any()
    moved = [np.abs(mlp.coefs_[2] - before).max() for mlp in (slow, fast)]
    assert moved[1] > 10 * moved[0] > 0
    fast.partial_fit(X[1:2], Y[1:2])
    assert (len(fast.loss_curve_), fast.n_iter_, fast.t_) == (1, 3, 3)


def test_pipeline_with_a_search():
    grid = {"mlp__max_iter": [1, 9], "mlp__deformation__alpha": [0.0, 4.0]}
    search = GridSearchCV(Pipeline([("mlp", make_mlp(**DEFORMED))]), grid, cv=2).fit(X, Y)
    assert search.best_params_["mlp__max_iter"] == 9
    assert search.score(X, Y) > 0.9
    mlp = make_mlp().set_params(deformation=DEFORMATION, deformation__beta=1, deformation__alpha=9)
    assert mlp.deformation == mlpcore.DeformationParameters(6.0, 9.0, 1.0, 5.0, (1,)) != DEFORMATION


def test_what_fit_is_given_decides(monkeypatch, capsys):
    """Random states, what is printed, and threads: small networks take one."""
    one, largest, drawn, again, *new = (
        make_mlp(random_state=each, max_iter=1).fit(X, Y)
        for each in (1, 2**64 - 1, RandomState(7), RandomState(7), None, None)
    )
    assert not same(one, largest) and same(drawn, again) and not same(*new)
    assert capsys.readouterr() == ("", "")
    make_mlp("7,5", verbose=True).fit(X, Y)
    words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["epoch", "1/3", "2/3", "3/3"]
    monkeypatch.setattr("mlpcore.estimators.validation.cores_beside_others", lambda: 8)
    weights = WEIGHTS_PER_THREAD
    for sizes, threads in (((weights - 2, 1), 1), ((3 * weights, 1), 3), ((3 * weights, 3), 8)):
        assert make_mlp()._get_backend(Network(sizes)).threads == threads
    assert make_mlp(threads=5)._get_backend(Network((3, 2))).threads == 5


@pytest.mark.parametrize("settings", [{}, MODERN])
def test_weights_in_scikit_learns_orientation(settings):
    mlp = make_mlp(learning_rate_init=0.05, **settings).fit(X, Y)
    states = X.astype(np.float64)
    for weights, biases in zip(mlp.coefs_, mlp.intercepts_):
        sums = states @ weights + biases
        states = np.maximum(sums, 0) if settings else A * np.tanh(B * sums)
    # Three layers of sums of up to 35 products in float32.
    expected = softmax(sums, axis=1) if settings else states
    np.testing.assert_allclose(mlp.decision_function(X), expected, atol=1e-5)
    assert np.array_equal(mlp.predict_proba(X), mlp.decision_function(X)) is bool(settings)
    assert mlp.score(X, Y) > 0.9
    mlp.coefs_[2][...] = 0
    mlp.intercepts_[2][...] = (0, 1, 0)
    assert set(mlp.predict(X)) == {1}


def test_samples_with_several_labels(capsys):
    """Any kind of matrix; with a deformation, where 1 is no label of similar pictures."""
    both = np.column_stack([Y > 0, Y < 2, Y == 1]).astype(int)
    mlp = make_mlp(**MODERN, verbose=True, max_iter=30).fit(X, both)
    assert capsys.readouterr().out.count("loss") == 30
    assert (mlp.classes_.tolist(), mlp.out_activation_) == ([0, 1, 2], "logistic")
    found = mlp.predict(X)
    assert found.dtype == np.int64
    assert mlp.score(X, both) == (found == both).all(axis=1).mean() > 0.9
    assert np.array_equal(found, mlp.decision_function(X) > 0)
    assert np.array_equal(found, mlp.predict_proba(X) > 0.5)
    for each in (csc_array(both), both.astype(bool), [*both], both.tolist()):
        assert same(mlp, make_mlp(**MODERN, max_iter=30).fit(X, each))
    same_decay = (make_mlp(**MODERN, alpha=alpha).fit(X, both) for alpha in ("auto", 7.5 / 230))
    assert same(*same_decay)
    deformed = DEFORMED | MODERN | {"max_iter": 30}
    plain = make_mlp(**deformed | {"deformation": structs.replace(DEFORMATION, similar_labels=())})
    assert same(make_mlp(**deformed).fit(X, both), plain.fit(X, both))
    assert plain.score(X, both) > 0.8 and plain.fit(X, Y).predict(X).shape == Y.shape


@pytest.mark.parametrize("class_weight", ["balanced", {"b": 3, "a": 0.5}])
def test_class_weights_are_weights_of_samples(class_weight):
    labels = np.array(["a", "b", "c"])[np.where(np.arange(230) < 40, Y, 1)]
    expected = compute_sample_weight(class_weight, labels).astype(np.float32)
    mlp = make_mlp(class_weight=class_weight).fit(X, labels)
    assert same(mlp, make_mlp().fit(X, labels, expected))
    assert not same(mlp, make_mlp().fit(X, labels))
    assert same(make_mlp(class_weight={}).fit(X, Y, np.ones(230, int)), make_mlp().fit(X, Y))
    parts = make_mlp(class_weight={1: 2}).partial_fit(X, Y, [0, 1, 2])
    assert same(parts, make_mlp().partial_fit(X, Y, [0, 1, 2], np.where(Y == 1, 2, 1)))
    weights = np.arange(230) % 4 / 2  # whose ratios matter
    both = make_mlp(class_weight=class_weight).fit(X, labels, 64 * weights)
    assert same(both, make_mlp().fit(X, labels, weights.astype(np.float32) * expected))


def test_held_out_samples_are_not_trained_on_have_all_classes_and_count_by_their_weights():
    weights = np.arange(230, dtype=np.float32)
    kept, held_out = Samples(X, Y, weights).split(0.2, 5)
    assert len(kept.targets) == 184
    assert sorted(np.bincount(held_out.targets)) == [15, 15, 16]
    for part in (kept, held_out):
        places = part.weights.astype(int)
        assert (np.diff(places) > 0).all()
        assert np.array_equal(part.inputs, X[places]) and np.array_equal(part.targets, Y[places])
    assert not np.array_equal(held_out.weights, Samples(X, Y, weights).split(0.2, 6)[1].weights)
    assert sorted(Samples(X, Y, None).split(0.001, 5)[1].targets) == [0, 1, 2]
    mlp = make_mlp(early_stopping=True, validation_fraction=0.2, max_iter=1).fit(X, Y, weights)
    right = mlp.predict(held_out.inputs) == held_out.targets
    assert mlp.best_validation_score_ == pytest.approx(np.average(right, weights=held_out.weights))
    assert mlp.best_validation_score_ != pytest.approx(np.mean(right))


@pytest.mark.parametrize(
    "settings, epochs", [({}, 4), ({"n_iter_no_change": np.inf}, 8), (DEFORMED, 8)]
)
def test_the_loss_alone_stops_no_deformed_training(settings, epochs):
    """No epoch is better by `tol` than the first."""
    mlp = make_mlp(**{"tol": 1e6, "n_iter_no_change": 2, "max_iter": 8} | settings)
    assert mlp.fit(X, Y).n_iter_ == epochs


def test_a_function_gets_the_classifier_after_each_epoch():
    seen = []
    mlp = make_mlp(callbacks=[lambda *args: seen.append(args)]).fit(X, Y)
    assert [each.n_iter_ for each, _ in seen] == [1, 2, 3]
    assert [each.loss_ for each, _ in seen] == mlp.loss_curve_
    assert [metrics.loss for _, metrics in seen] == mlp.loss_curve_
    # Each is a copy of its own, and of the last epoch it is the result.
    errors = [np.sum(each.predict(X) != Y) for each, _ in seen]
    assert errors == [metrics.validation_errors for _, metrics in seen]
    assert not same(seen[0][0], seen[1][0])
    assert same(seen[2][0], mlp) and same(mlp, make_mlp().fit(X, Y))
    seen.clear()
    mlp.set_params(early_stopping=True).fit(X, Y)
    assert [len(each.validation_scores_) for each, _ in seen] == [1, 2, 3]


def test_true_stops_and_an_observer_sees_the_trainer():
    for answer in (True, np.True_):
        mlp = make_mlp(callbacks=[lambda each, metrics: metrics.epoch == 2 and answer])  # noqa: B023
        assert mlp.fit(X, Y).n_iter_ == len(mlp.loss_curve_) == 2
    watch = Mock(spec=Observer)
    watch.on_epoch_end.side_effect = lambda trainer, metrics: trainer.request_stop()
    assert make_mlp(callbacks=(watch,)).fit(X, Y).n_iter_ == 1
    events = [name for name, *_ in watch.method_calls if name != "on_progress"]
    assert events == ["on_epoch_start", "on_epoch_end", "on_stop", "on_run_end"]


RAW = load_breast_cancer(return_X_y=True)
STOPPED = {"max_iter": 4, "callbacks": [lambda mlp, metrics: metrics.epoch == 3]}


def fit_iris(rate, **settings):
    mlp = OnlineMLPClassifier(learning_rate_init=rate, random_state=0, max_iter=20)
    mlp.set_params(**settings).fit(*load_iris(return_X_y=True))


def test_weights_above_1_make_no_unstable_step():
    """Those of steps beyond eta w (1 + |x|^2) = 4 are lowered, but not below 1."""

    def learnt(weight, rate=0.02):
        inputs, mlp = np.full((5, 35), (99 / 35) ** 0.5), make_mlp(learning_rate_init=rate)
        return mlp.partial_fit(inputs, Y[:5], [0, 1, 2], np.full(5, weight))

    assert same(learnt(9), learnt(5)) and not same(learnt(5), learnt(1.9))
    np.testing.assert_allclose(learnt(9).intercepts_[-1], learnt(2).intercepts_[-1], rtol=1e-5)
    assert same(learnt(9, rate=0.1), learnt(1, rate=0.1))


#: Calls, and the warning of each; there is none at all where it is "".
WARNINGS = [
    (lambda: make_mlp().fit(*RAW), r"^UserWarning: X is far outside \[-1, 1\].*StandardScaler"),
    (lambda: make_mlp().partial_fit(*RAW, [0, 1]), "feature 23 has a root mean square of 1048"),
    (lambda: OnlineMLPClassifier(random_state=0).fit(scale(RAW[0]), RAW[1]), ""),
    (lambda: make_mlp().fit(X, Y), "^ConvergenceW.*still .* after 3 epochs.*max_iter"),
    (lambda: make_mlp(**STOPPED).fit(X, Y), ""),
    (lambda: fit_iris(10), "Lower it"),
    (lambda: fit_iris(100, loss="squared", activation="tanh"), "Lower it"),
    (lambda: fit_iris(10, early_stopping=True), "Lower it"),
    (lambda: fit_iris(1e-7, max_iter=2), ""),
    (lambda: fit_iris(1e-7, max_iter=2, loss="squared", init="uniform", activation="tanh"), ""),
]


@pytest.mark.parametrize("call, words", WARNINGS)
def test_warnings(call, words):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {each.filename for each in caught} == ({__file__} if words else set())
    texts = "\n".join(f"{each.category.__name__}: {each.message}" for each in caught)
    assert re.search(words, texts, re.MULTILINE)
