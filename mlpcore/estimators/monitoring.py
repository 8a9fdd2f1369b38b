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

#: The loss still falls if its mean falls by more than this share from one fifth of the epochs to
#: the next, the last. A learning rate that falls to 0 brings less where nothing else is learnt.
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


def still_falls(losses: Sequence[float], tol: float) -> bool:
    """Whether the loss still falls in the last fifth of these epochs, one at least.

    It does if its mean is below that of the fifth before by more than a share of `STILL_FALLS`, and
    by more than `tol` per epoch: of a loss of almost 0 any share is little.
    """
    n = max(1, len(losses) // 5)
    if len(losses) < 2 * n:
        return False
    before, last = np.mean(losses[-2 * n : -n]), np.mean(losses[-n:])
    return bool(before - last > max(STILL_FALLS * before, tol * n))


def warn_if_still_falling(losses: Sequence[float], tol: float) -> None:
    """Warns if the loss of these epochs, all that `fit` trains, still falls at their end."""
    if still_falls(losses, tol):
        warnings.warn(
            f"The loss still falls after {len(losses)} epochs, to {losses[-1]:.4g}: training has "
            "not converged. Raise max_iter or learning_rate_init.",
            ConvergenceWarning,
            stacklevel=5,  # of who called fit
        )
