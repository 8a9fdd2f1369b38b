"""The classifier: scikit-learn's conventions, and the same training as everywhere else."""

import copy
import pickle

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mlpcore import DeformationParameters, OnlineMLPClassifier, backends, deformation
from mlpcore.deformation.parameters import IDENTITY
from mlpcore.deformation.values import background_of
from mlpcore.estimators import classifier
from mlpcore.estimators.classifier import FIRST_PARTIAL_EPOCH, WEIGHTS_PER_THREAD
from mlpcore.network import Network
from mlpcore.training.trainer import Trainer
from small_classifiers import (
    DEFORMATION,
    DEFORMED,
    MODERN,
    SHORT,
    X,
    Y,
    make_mlp,
    same,
)
from small_runs import BACKENDS, DATA, make_config, same_weights

OTHER_RATES = {"target": 1.5, "learning_rate_ratio": 2.0}

pytestmark = SHORT

#: Every two settings of early stopping, weights of classes and warm start, once or more.
CHECKED = [
    OnlineMLPClassifier(),
    OnlineMLPClassifier(alpha=0.01),
    OnlineMLPClassifier(early_stopping=True, class_weight="balanced"),
    OnlineMLPClassifier(early_stopping=True, warm_start=True),
    OnlineMLPClassifier(class_weight="balanced", warm_start=True),
]


def not_passed(mlp):
    """A sample of weight 2 takes one step twice as long, not two steps at two times."""
    check, kinds = "check_sample_weight_equivalence_on_{}_data", ("dense", "sparse")
    failed = {check.format(kind): "on-line steps have an order" for kind in kinds}
    return failed | (
        {"check_supervised_y_2d": "its second fit continues"} if mlp.warm_start else {}
    )


@parametrize_with_checks(CHECKED, expected_failed_checks=not_passed)
@pytest.mark.filterwarnings("ignore:X is far outside")  # as data of some checks are
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# The same training as everywhere


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 0.1}, OTHER_RATES, DEFORMED, MODERN | {"decay": "linear", "warm_up": 300}],
)
def test_fit_is_the_trainers_run(settings):
    mlp = make_mlp(**settings).fit(X, Y)
    changes = {name: value for name, value in settings.items() if name != "image_shape"}
    alpha = changes.pop("alpha", 0.0)
    config = make_config(**{"deformation": IDENTITY} | changes)
    trainer = Trainer(config, DATA, backends.get("cpu"), weight_decay=alpha)
    trainer.run()
    assert same_weights(mlp.network_, trainer.state.network)
    assert mlp.loss_curve_ == [metrics.loss for metrics in trainer.state.history]
    assert (mlp.loss_, mlp.n_iter_) == (mlp.loss_curve_[-1], 3)
    assert mlp.target_ == config.target


@pytest.mark.parametrize("weights", [None, np.arange(230, dtype=np.float32) % 3])
@pytest.mark.parametrize(
    "settings", [{}, {"alpha": 0.5}, OTHER_RATES, DEFORMED, {"decay": "linear", "warm_up": 1000}]
)
def test_partial_fit_is_a_pass_in_the_order_given(settings, weights):
    """A weight of a sample is a factor of its learning rate."""
    mlp, total = make_mlp(**settings), 230 if weights is None else weights.sum()
    network, backend = Network((35, 9, 6, 3), 5), backends.get("cpu", 1)
    rates = [0.02, 0.01, 0.005] if settings is OTHER_RATES else 0.01
    losses = []
    for epoch in range(FIRST_PARTIAL_EPOCH, FIRST_PARTIAL_EPOCH + 2):
        mlp.partial_fit(X, Y, [0, 1, 2], weights)
        images, order = DATA.train_images, np.arange(230, dtype=np.int32)
        if settings is DEFORMED:
            drawing, around = (DEFORMATION, 5, epoch, backend), background_of(images)
            images = deformation.deform(images, Y, *drawing, background=around)
        target, inputs = settings.get("target", 1.0), images.reshape(X.shape)
        more = (None, target, weights, settings.get("alpha", 0.0))
        losses.append(backend.train(network, inputs, Y, order, rates, *more).loss / total)
    assert same_weights(mlp.network_, network)
    assert mlp.loss_curve_ == pytest.approx(losses, rel=1e-5)  # kept to six digits
    assert mlp.target_ == target


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_trains_and_predicts(name):
    """As the oracle does, to 1e-4: 40 steps, each rounding outputs of 1 some ten times."""
    fitted = [
        make_mlp(backend=each, max_iter=1, **DEFORMED)
        .fit(X[:20], Y[:20])
        .partial_fit(X[20:40], Y[20:40])
        for each in ("reference", name)
    ]
    expected, outputs = (mlp.decision_function(X[:50]) for mlp in fitted)
    np.testing.assert_allclose(outputs, expected, atol=1e-4)


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


# Training in parts


def test_warm_start_continues_as_if_it_had_not_stopped():
    long = make_mlp(max_iter=5, **DEFORMED).fit(X, Y)
    parts = make_mlp(max_iter=2, warm_start=True, **DEFORMED).fit(X, Y)
    before = parts.coefs_[0].copy()
    parts.set_params(max_iter=3).fit(X, Y)
    assert parts.n_iter_ == 5
    # The rates of the epochs may differ in the last bits of float64.
    assert parts.loss_curve_ == pytest.approx(long.loss_curve_, rel=1e-5)
    for a, b in zip(long.coefs_, parts.coefs_):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert not np.allclose(before, parts.coefs_[0], atol=1e-4)
    assert parts.partial_fit(X, Y).fit(X, Y).n_iter_ == 9


def test_partial_fit_of_parts_is_partial_fit_of_the_whole():
    """To the bit in calls of few samples; their losses are means."""
    whole, parts, many = (make_mlp(alpha=5.0) for _ in range(3))
    whole.partial_fit(X[:32], Y[:32], classes=[0, 1, 2])
    parts.partial_fit(X[:1], Y[:1], classes=[2, 1, 0])
    for begin, end in ((1, 2), (2, 20), (20, 32)):
        parts.partial_fit(X[begin:end], Y[begin:end])
    assert same(whole, parts)
    assert parts.n_iter_ == 4
    assert np.average(parts.loss_curve_, weights=[1, 1, 18, 12]) == pytest.approx(whole.loss_)
    many.partial_fit(X[:33], Y[:33], classes=[0, 1, 2])  # not by steps, but for rounding the same
    np.testing.assert_allclose(
        parts.partial_fit(X[32:33], Y[32:33]).coefs_[0], many.coefs_[0], 1e-4
    )


def started(**changes):
    """A classifier that has taken its first step."""
    return make_mlp(**changes).partial_fit(X[:1], Y[:1], classes=[0, 1, 2])


def test_weights_that_are_written_and_parameters_that_change_count_in_the_next_step(monkeypatch):
    """Of the losses only the last ones are kept."""
    monkeypatch.setattr(classifier, "LONGEST_CURVE", 1)
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


# With scikit-learn's tools


def test_clones_copies_and_pickles():
    mlp = make_mlp(**DEFORMED).fit(X, Y)
    assert clone(mlp).get_params() == mlp.get_params()
    assert not hasattr(clone(mlp), "network_")
    twins = copy.deepcopy(mlp), pickle.loads(pickle.dumps(mlp))
    assert same(*(twin.partial_fit(X, Y) for twin in twins)) and not same(twins[0], mlp)


def test_pipeline_with_a_search_in_two_processes():
    grid = {"mlp__max_iter": [1, 9], "mlp__deformation__alpha": [0.0, 4.0]}
    pipeline = Pipeline([("mlp", make_mlp(**DEFORMED))])
    one, two = (GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    assert np.array_equal(*(each.cv_results_["mean_test_score"] for each in (one, two)))
    assert two.best_params_["mlp__max_iter"] == 9
    assert two.score(X, Y) > 0.9
    mlp = make_mlp(**DEFORMED)
    twin = clone(mlp).set_params(deformation__alpha=9.0, deformation__beta=1)
    assert twin.deformation == DeformationParameters(6.0, 9.0, 1.0, 5.0, (1,))
    assert mlp.deformation == DEFORMATION  # the two share it, and it never changes
    twin.set_params(deformation=DEFORMATION, deformation__beta=2)
    assert twin.deformation == DEFORMATION.set_params(beta=2)


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
