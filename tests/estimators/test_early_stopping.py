"""Early stopping: when it stops, what it keeps, and on which samples it decides."""

from unittest.mock import Mock

import numpy as np
import pytest

from mlpcore.estimators.fitting import Plateau
from mlpcore.estimators.validation import Samples
from small_classifiers import DEFORMED, MODERN, SHORT, X, Y, make_mlp, same

pytestmark = SHORT

STOPS = {
    **MODERN,
    **{"decay": "factor", "learning_rate_init": 0.01, "learning_rate_end": 0.01, "max_iter": 60},
    **{"early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 3},
}


def test_the_network_is_that_of_the_best_epoch():
    """Trained again up to the best epoch, without more, it is the same."""
    mlp = make_mlp(**STOPS).fit(X, Y)
    scores = mlp.validation_scores_
    assert len(scores) == mlp.n_iter_ == len(mlp.loss_curve_) < 60
    assert mlp.best_validation_score_ == max(scores)
    best = scores.index(max(scores))
    # Once the best is reached, no later epoch is better by `tol`: four more, then it stops.
    assert len(scores) - 1 - best == 4
    again = make_mlp(**STOPS | {"max_iter": best + 1}).fit(X, Y)
    assert same(mlp, again)


def test_held_out_samples_are_not_trained_on_and_have_all_classes():
    weights = np.arange(230, dtype=np.float32)
    kept, held_out = Samples(X, Y, weights).split(0.2, 5)
    assert len(kept.codes) == 184
    assert sorted(np.bincount(held_out.codes)) == [15, 15, 16]
    for part in (kept, held_out):
        places = part.weights.astype(int)
        assert np.array_equal(part.inputs, X[places]) and np.array_equal(part.codes, Y[places])
    assert not np.array_equal(held_out.weights, Samples(X, Y, weights).split(0.2, 6)[1].weights)
    assert sorted(Samples(X, Y, None).split(0.001, 5)[1].codes) == [0, 1, 2]


@pytest.mark.parametrize("tol, n_epochs", [(0.0, 6), (0.04, 5), (0.05, 4)])
def test_the_rule(tol, n_epochs):
    """An epoch that equals the best counts as better with `tol` 0 only, as in MLPClassifier."""
    run, stops = Mock(), []
    run.request_stop = lambda: stops.append(True)
    plateau = Plateau(make_mlp(n_iter_no_change=2, tol=tol))
    for done, loss in enumerate([0.5, 0.46, 0.46, 0.6, 0.6, 0.6, 0.6], 1):
        plateau.on_epoch_end(run, Mock(loss=loss))
        assert bool(stops) is (done == n_epochs)
        if stops:
            break


def test_weights_count_in_the_score():
    weights = 1.0 + Y
    mlp = make_mlp(early_stopping=True, validation_fraction=0.2, max_iter=1).fit(X, Y, weights)
    _, held_out = Samples(X, Y, weights).split(0.2, 5)
    right = mlp.predict(held_out.inputs) == held_out.codes
    assert mlp.best_validation_score_ == pytest.approx(np.average(right, weights=held_out.weights))
    assert mlp.best_validation_score_ != pytest.approx(np.mean(right))


@pytest.mark.parametrize("settings, epochs", [({}, 4), (DEFORMED, 8)])
def test_the_loss_alone_stops_no_deformed_training(settings, epochs):
    """No epoch is better by `tol` than the first."""
    mlp = make_mlp(tol=1e6, n_iter_no_change=2, max_iter=8, **settings)
    assert mlp.fit(X, Y).n_iter_ == epochs
