"""What a trainer does with a backend's answers: counts, rates, divergence."""

import dataclasses
import math

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.training import trainer as training
from mlpcore.training.trainer import Diverged, Trainer
from small_runs import (
    DATA,
    Hook,
    assert_same_result,
    make_config,
    same_weights,
    train,
)


class Scripted:
    """A backend with scripted error counts, whose training adds 1 to a bias."""

    def __init__(self, validation=(9, 9, 9), test=(9, 9, 9)):
        self.counts = iter([count for pair in zip(validation, test) for count in pair])
        self.calls = []
        self.inner = backends.get("cpu")

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def train(self, network, images, labels, order, learning_rate, progress=None, *rest):
        self.calls.append((len(order), learning_rate, rest))
        network.biases[0][0] = len(self.calls)
        result = backends.TrainingResult(len(order), 0, 1.0)
        progress(result)
        return result

    def count_errors(self, network, images, labels, poll=None):
        poll()
        return next(self.counts)


class Poisoned(Scripted):
    """A backend whose training leaves a NaN in the weights in the second epoch."""

    loss = 1.0

    def train(self, network, *arguments):
        result = super().train(network, *arguments)
        if sum(samples for samples, *_ in self.calls) <= 230:
            return result
        network.weights[1][0, 0] = math.nan
        return dataclasses.replace(result, loss=self.loss)


def test_the_first_of_the_lowest_validation_errors_wins():
    state = train(make_config(epochs=5), Scripted((9, 4, 7, 4, 5), (9, 3, 2, 1, 6)))
    assert state.best_metrics.epoch == state.best.biases[0][0] == 2
    assert state.best_metrics.test_errors == 3
    assert state.network.biases[0][0] == 5
    assert state.best_test_metrics.test_errors == 1


def test_a_rate_that_falls_to_0_needs_few_validations(monkeypatch):
    """Of seven epochs the first, the last and one in between, and each one's test images."""
    monkeypatch.setattr("mlpcore.training.config.MILESTONES", 2)
    counts = Scripted()
    counts.counts = iter([9, 5, 6, 7, 5, 4, 8, 3, 2, 1])
    state = train(make_config(epochs=7, decay="linear"), counts)
    errors = [(each.validation_errors, each.test_errors) for each in state.history]
    assert errors == [(9, 5), (None, 6), (None, 7), (5, 4), (None, 8), (None, 3), (2, 1)]
    assert state.best_metrics.epoch == state.best.biases[0][0] == 7
    assert [math.isnan(each.validation_error) for each in state.history][2:4] == [True, False]
    assert all(map(make_config(epochs=7).validates, range(1, 8)))  # its rate does not fall to 0


def test_ones_and_sevens_get_strokes_before_they_are_deformed():
    """Those of the seed, in all epochs and in the validation, but not in the test."""
    digits, backend = dataclasses.replace(DATA, classes=(1, 5, 7)), backends.get("scalar", 1)
    drawn = Trainer(make_config(ones_and_sevens=0.5), digits, backend)
    expected = Trainer(make_config(), digits.with_strokes(0.5, 5), backend)
    assert drawn.run() and expected.run()
    assert_same_result(drawn.state, expected.state)
    without = train(make_config(), backend)
    assert not same_weights(drawn.state.network, without.network)


def test_divergence_names_epoch_and_learning_rate(backend):
    config = make_config(learning_rate=3e38, learning_rate_end=3e38)
    with np.errstate(all="ignore"), pytest.raises(Diverged, match=r"epoch 1 .* rate 3e\+38"):
        train(config, backend)


@pytest.mark.parametrize(
    ("loss", "cause", "samples"),
    [(1.0, "a weight", [64, 64, 64, 38] * 2), (math.nan, "the loss", [64, 64, 64, 38, 64])],
)
def test_what_is_not_finite_stops_training_and_is_not_kept(monkeypatch, loss, cause, samples):
    """A loss within the epoch, a weight at its end, even where a stop is asked for."""
    monkeypatch.setattr(training, "SEGMENT", 64)
    events, backend = [], Poisoned()
    backend.loss = loss

    def note(trainer, event, done=0, *rest):
        events.append(event)
        if event == "training" and done == 230 and trainer.state.epoch == 1:
            trainer.request_stop()

    with pytest.raises(Diverged, match=rf"epoch 2 at learning rate 0\.01: {cause}"):
        train(make_config(learning_rate_end=0.01), backend, [Hook(note)])
    assert events.count("epoch_end") == 1
    assert "stop" not in events
    assert [samples for samples, *_ in backend.calls] == samples
