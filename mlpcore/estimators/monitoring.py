"""What watches a training of the classifier: early stopping, callbacks, warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mlpcore.errors import InputError
from mlpcore.estimators import passes
from mlpcore.estimators.samples import Samples
from mlpcore.network.network import Network
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer

#: The loss still falls if what it fell in the second half of the learning exceeds this share of the
#: first epoch's loss. Epochs count by their learning rates, because at a rate of almost 0 no loss
#: falls. As many epochs again would gain about as much or less.
STILL_FALLS = 0.1


class EarlyStopping(Observer):
    """Stops a training when the accuracy on held-out samples rises no more; keeps the best network.

    The rule is that of scikit-learn's MLPClassifier: training stops after more than
    `n_iter_no_change` epochs in a row, none of which was better than the best by `tol`.

    Attributes
    ----------
    scores
        The accuracy after each epoch.
    best, best_score
        The network of the first epoch with the highest accuracy, and that accuracy.
    """

    def __init__(self, held_out: Samples, n_iter_no_change: int, tol: float):
        self.held_out, self.n_iter_no_change, self.tol = held_out, n_iter_no_change, tol
        self.scores: list[float] = []
        self.best_score = -np.inf
        self.best: Network | None = None
        self._without_change = 0

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Scores the network, and asks for a stop if it is time."""
        network, samples = trainer.state.network, self.held_out
        guesses = passes.outputs(network, samples.inputs, trainer.backend).argmax(axis=1)
        score = float(np.average(guesses == samples.codes, weights=samples.weights))
        self.scores.append(score)
        improved = score >= self.best_score + self.tol
        self._without_change = 0 if improved else self._without_change + 1
        if score > self.best_score:
            self.best_score, self.best = score, network.copy()
        if self._without_change > self.n_iter_no_change:
            trainer.request_stop()


class Callback(Observer):
    """Calls a function after each epoch, and stops the training if it returns true.

    Parameters
    ----------
    function
        Gets what `snapshot` returns, and the epoch's metrics.
    snapshot
        Returns the estimator as it is after the epoch.
    """

    def __init__(
        self,
        function: Callable[[Any, EpochMetrics], object],
        snapshot: Callable[[Trainer], Any],
    ):
        self.function, self.snapshot = function, snapshot

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Calls the function."""
        if self.function(self.snapshot(trainer), metrics):
            trainer.request_stop()


def observers_of(callbacks: Any, snapshot: Callable[[Trainer], Any]) -> list[Observer]:
    """Observers for functions and Observers; None stands for none of them."""
    if not isinstance(callbacks, Sequence | None):
        raise InputError(f"callbacks {callbacks!r}: expected a list of functions or Observers")
    observers: list[Observer] = []
    for each in callbacks or ():
        if not (isinstance(each, Observer) or callable(each)) or isinstance(each, type):
            raise InputError(f"callbacks: {each!r}, expected functions or Observers")
        observers.append(each if isinstance(each, Observer) else Callback(each, snapshot))
    return observers


def still_falls(losses: Sequence[float], rates: Sequence[float], first: float) -> bool:
    """Whether the loss still falls after epochs with these mean losses and learning rates.

    `first` is the loss of the first epoch of all, also of an earlier fit.
    """
    learnt = np.cumsum(rates)
    half = int(np.searchsorted(learnt, learnt[-1] / 2))
    return losses[half] - losses[-1] > STILL_FALLS * first


def warn_if_still_falling(history: Sequence[EpochMetrics], n_before: int) -> None:
    """Warns if the loss still falls at the end of `fit`, before which there were some epochs."""
    epochs = history[n_before:]
    losses = [metrics.loss for metrics in epochs]
    if still_falls(losses, [metrics.learning_rate for metrics in epochs], history[0].loss):
        warnings.warn(
            f"The loss still falls after {len(epochs)} epochs, to {losses[-1]:.4g}: training has "
            "not converged. Raise max_iter or learning_rate_init.",
            ConvergenceWarning,
            stacklevel=4,  # of who called fit
        )
