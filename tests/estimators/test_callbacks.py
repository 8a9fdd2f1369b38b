"""Callbacks: when they are called, with what, and how they stop a training."""

from unittest.mock import Mock

import numpy as np
import pytest

from mlpcore.training.trainer import Observer
from small_classifiers import SHORT, X, Y, make_mlp, same

pytestmark = SHORT


def test_a_function_gets_the_classifier_after_each_epoch():
    seen = []
    mlp = make_mlp()
    mlp.set_params(callbacks=[lambda *args: seen.append(args)]).fit(X, Y)
    assert [metrics.epoch for _, metrics in seen] == [1, 2, 3]
    assert [each.n_iter_ for each, _ in seen] == [1, 2, 3]
    assert [each.loss_ for each, _ in seen] == mlp.loss_curve_
    assert [metrics.loss for _, metrics in seen] == mlp.loss_curve_
    # Each is a copy of its own, which stays as it was, and of the last epoch it is the result.
    errors = [np.sum(each.predict(X) != Y) for each, _ in seen]
    assert errors == [metrics.validation_errors for _, metrics in seen]
    assert not same(seen[0][0], seen[1][0])
    assert same(seen[2][0], mlp) and same(mlp, make_mlp().fit(X, Y))
    assert all(each is not mlp for each, _ in seen)
    seen.clear()
    mlp = make_mlp(early_stopping=True, callbacks=mlp.callbacks, warm_start=True).fit(X, Y)
    first, *_, last = (each.validation_scores_ for each, _ in seen)
    assert len(first) == 1 and last == mlp.validation_scores_ and len(last) == 3
    assert mlp.fit(X, Y).validation_scores_[:3] == last and mlp.n_iter_ == 6


@pytest.mark.parametrize("answer, n_iter", [(True, 2), (np.True_, 2), (None, 3)])
def test_true_stops(answer, n_iter):
    mlp = make_mlp(callbacks=[lambda each, metrics: answer if metrics.epoch == 2 else None])
    assert mlp.fit(X, Y).n_iter_ == n_iter
    assert len(mlp.loss_curve_) == n_iter


def test_an_observer_sees_the_trainer():
    watch = Mock(spec=Observer)
    watch.on_epoch_end.side_effect = lambda trainer, metrics: trainer.request_stop()
    assert make_mlp(callbacks=(watch,)).fit(X, Y).n_iter_ == 1
    events = [name for name, *_ in watch.method_calls if name != "on_progress"]
    assert events == ["on_epoch_start", "on_epoch_end", "on_stop", "on_run_end"]
