"""Properties of all estimators, and of the classifier and the regressor for any matrix."""

import copy
import pickle
import pickletools
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import mlpcore
from mlpcore import OnlineMLPClassifier, OnlineMLPRegressor
from small_classifiers import SHORT
from small_runs import same_weights

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 6)).astype(np.float32)
X[RNG.random(X.shape) < 0.4] = 0
NUMBERS = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2], 40 - 9 * X[:, 3]]).astype(float)
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
MATRIX = np.column_stack([X[:, 0] + X[:, 1] > 0, X[:, 2] > 0, X[:, 3] > -2]).astype(int)
WEIGHTS = RNG.integers(0, 4, 200)

pytestmark = SHORT

EACH = pytest.mark.parametrize(
    "kind, y, first",
    [
        (OnlineMLPClassifier, LABELS, {"classes": ["no", "yes"]}),
        (OnlineMLPClassifier, MATRIX, {"classes": range(3)}),
        (OnlineMLPRegressor, NUMBERS, {}),
    ],
)


def make_mlp(kind, **settings):
    return kind((20,), **{"random_state": 0, "max_iter": 5} | settings)


def answers(mlp, rows):
    """Probabilities, or numbers by the deviation of the targets."""
    if isinstance(mlp, OnlineMLPClassifier):
        return mlp.predict_proba(rows)
    return mlp.predict(rows) / NUMBERS.std(axis=0)


ESTIMATORS = "ElasticDeformer", "OnlineMLPClassifier", "OnlineMLPRegressor"
ESTIMATORS += "StreamMLPClassifier", "StreamMLPRegressor"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_pickles_do_not_name_the_module_and_dask_tells_what_was_learnt(name):
    """Otherwise Dask would take the predictions of one for those of another."""
    estimator = getattr(mlpcore, name)
    texts = {argument for _, argument, _ in pickletools.genops(pickle.dumps(estimator()))}
    assert "mlpcore" in texts
    assert estimator.__init__.__module__ not in texts
    tokenize = pytest.importorskip("dask.base").tokenize
    fitted = estimator()
    fitted.learnt_ = 3
    assert tokenize(fitted) != tokenize(estimator())


@EACH
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize(
    "settings", [{"activation": "tanh", "alpha": 0.2}, {"alpha": 0}, {"early_stopping": True}]
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_training_is_the_oracles(kind, y, first, convert, settings, weights):
    """To 1e-5: 1,200 steps, whose roundings of 1e-7 do not grow."""
    mlp = make_mlp(kind, **settings).fit(convert(X), y, weights)
    oracle = make_mlp(kind, backend="reference", **settings).fit(X, y, weights)
    if "early_stopping" not in settings:
        mlp.partial_fit(convert(X), y, sample_weight=weights)
        oracle.partial_fit(X, y, sample_weight=weights)
    for rows in (X, convert(X)):
        np.testing.assert_allclose(answers(mlp, rows), answers(oracle, X), rtol=0, atol=1e-5)
    np.testing.assert_allclose(mlp.loss_curve_, oracle.loss_curve_, rtol=1e-4)


@EACH
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("alpha", [5.0, "auto"])
def test_partial_fit_has_the_same_bits_however_samples_are_cut(kind, y, first, convert, alpha):
    """Into calls of few samples, pickled in between if weights do not decay."""
    whole, parts, weights = make_mlp(kind, alpha=alpha), make_mlp(kind, alpha=alpha), WEIGHTS + 1
    for begin in range(0, 200, 25):
        for mlp, cuts in ((whole, [0, 25]), (parts, [0, 1, 20, 25])):
            for some in (slice(begin + low, begin + high) for low, high in pairwise(cuts)):
                found = (X[some], y[some]) if mlp is whole else (convert(X[some]), y[some].tolist())
                mlp.partial_fit(*found, sample_weight=weights[some], **first)
        if alpha == "auto":
            parts = copy.deepcopy(pickle.loads(pickle.dumps(parts)))
    assert same_weights(whole.network_, parts.network_)
    assert np.array_equal(whole.predict(X), parts.predict(X))
    places = [begin + cut for begin in range(0, 200, 25) for cut in (0, 1, 20)]
    of_parts = np.average(parts.loss_curve_, weights=np.add.reduceat(weights, places))
    of_whole = np.average(whole.loss_curve_, weights=weights.reshape(8, 25).sum(axis=1))
    assert of_parts == pytest.approx(of_whole)
    assert (parts.n_iter_, parts.t_) == (24, 200)


@EACH
def test_the_network_is_that_of_the_best_epoch(kind, y, first):
    """Trained again up to the best epoch, without more, it is the same."""
    stops = {
        **{"decay": "factor", "learning_rate_init": 0.03, "learning_rate_end": 0.03},
        **{"max_iter": 1000, "tol": 1e-9, "n_iter_no_change": 3},
        **{"early_stopping": True, "validation_fraction": 0.2},
    }
    mlp = make_mlp(kind, **stops).fit(X, y)
    scores = mlp.validation_scores_
    assert len(scores) == mlp.n_iter_ == len(mlp.loss_curve_) < 1000
    assert mlp.best_validation_score_ == max(scores) > 0.7 and mlp.best_loss_ is None
    best = scores.index(max(scores))
    # Once the best is reached, no later epoch is better by `tol`: four more, then it stops.
    assert len(scores) - 1 - best == 4
    again = make_mlp(kind, **stops | {"max_iter": best + 1}).fit(X, y)
    assert same_weights(mlp.network_, again.network_)
    mlp.set_params(warm_start=True, early_stopping=False, max_iter=1).fit(X, y)
    assert mlp.best_validation_score_ is None


def test_a_sparse_matrix_is_summed_up_and_left_as_it_is():
    twice = sparse.csr_matrix((np.ones(4, np.float32), [3, 1, 1, 0], [0, 3, 4]), shape=(2, 5))
    mlp = make_mlp(OnlineMLPClassifier).fit(twice, [0, 1])
    assert np.array_equal(mlp.predict_proba(twice), mlp.predict_proba(twice.toarray()))
    assert not twice.has_canonical_format and twice.nnz == 4


def test_wide_sparse_rows_fit_into_little_memory():
    """As an array they would take 8 GB."""
    n, width = 2000, 1_000_000
    indices = RNG.integers(0, 1000, (n, 20)) + np.arange(n)[:, None] % 2 * (width // 2)
    places = indices.ravel(), np.arange(0, n * 20 + 1, 20)
    rows = sparse.csr_array((np.ones(n * 20, np.float32), *places), shape=(n, width))
    mlp = OnlineMLPClassifier((8,), random_state=0, max_iter=2).fit(rows, np.arange(n) % 2)
    assert mlp.score(rows[:100], np.arange(100) % 2) > 0.9
