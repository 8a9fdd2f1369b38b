"""How the classifier is trained: what watches `fit`, and the one pass of `partial_fit`."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mlpcore.backends.base import Backend
from mlpcore.deformation.deform import deform
from mlpcore.errors import InputError
from mlpcore.estimators.prediction import outputs_of
from mlpcore.estimators.validation import Samples
from mlpcore.network.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Diverged, Observer, Trainer
from mlpcore.typing import Float32Array

#: The loss still falls if what it fell in the second half of the learning exceeds this share of the
#: first epoch's loss. Epochs count by their learning rates, because at a rate of almost 0 no loss
#: falls. As many epochs again would gain about as much or less.
STILL_FALLS = 0.1


def copy_of(mlp: Any) -> Any:
    """A copy of a fitted classifier that training it further leaves as it is."""
    result = copy.copy(mlp)
    for name in ("network_", "loss_curve_", "validation_scores_"):
        setattr(result, name, copy.copy(getattr(mlp, name)))
    return result


class EpochRecord(Observer):
    """Brings the fitted attributes of a classifier up to date after each epoch."""

    def __init__(self, mlp: Any):
        self.mlp = mlp

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Adds the epoch; the network is the one in training."""
        self.mlp.loss_curve_.append(metrics.loss)
        self.mlp._history = trainer.state.history


class EarlyStopping(Observer):
    """Stops a training when the accuracy on held-out samples rises no more.

    The rule is that of scikit-learn's MLPClassifier: training stops after more than
    `n_iter_no_change` epochs in a row, none of which was better than the best by `tol`. The
    classifier's scores are brought up to date, and `best` is the network of the first epoch with
    the highest one.
    """

    def __init__(self, mlp: Any, held_out: Samples):
        self.mlp, self.held_out = mlp, held_out
        self.best: Network | None = None
        self._without_change = 0
        mlp.validation_scores_, mlp.best_validation_score_ = mlp.validation_scores_ or [], -np.inf

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Scores the network, and asks for a stop if it is time."""
        mlp, network, samples = self.mlp, trainer.state.network, self.held_out
        guesses = outputs_of(network, samples.inputs, trainer.backend).argmax(axis=1)
        score = float(np.average(guesses == samples.codes, weights=samples.weights))
        mlp.validation_scores_.append(score)
        improved = score >= mlp.best_validation_score_ + mlp.tol
        self._without_change = 0 if improved else self._without_change + 1
        if score > mlp.best_validation_score_:
            mlp.best_validation_score_, self.best = score, network.copy()
        if self._without_change > mlp.n_iter_no_change:
            trainer.request_stop()


class Callback(Observer):
    """Calls a function of a classifier after each epoch, and stops if it returns true."""

    def __init__(self, function: Callable[[Any, EpochMetrics], object], mlp: Any):
        self.function, self.mlp = function, mlp

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Calls the function with a copy of the classifier."""
        if self.function(copy_of(self.mlp), metrics):
            trainer.request_stop()


def observers_of(callbacks: Any, mlp: Any) -> list[Observer]:
    """Observers for functions and Observers; None stands for none of them."""
    if not isinstance(callbacks, Sequence | None):
        raise InputError(f"callbacks {callbacks!r}: expected a list of functions or Observers")
    for each in callbacks or ():
        if not (isinstance(each, Observer) or callable(each)) or isinstance(each, type):
            raise InputError(f"callbacks: {each!r}, expected functions or Observers")
    return [each if isinstance(each, Observer) else Callback(each, mlp) for each in callbacks or ()]


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
            stacklevel=3,  # of who called fit
        )


def train_in_order(
    network: Network,
    images: Float32Array,
    samples: Samples,
    config: TrainingConfig,
    epoch: int,
    backend: Backend,
) -> float:
    """Trains a network on samples in their order, their images deformed for an epoch.

    Returns the mean loss, weighted as the samples are. The learning rate is that of the beginning
    of a run, after its warm-up. Raises `Diverged` when weights or loss are no longer finite.
    """
    shown, labels = backend.put(images), backend.put(samples.codes)
    if not config.deformation.is_identity:
        shown = deform(shown, labels, config.deformation, config.seed, epoch, backend)
    inputs = shown.reshape(len(images), network.layer_sizes[0])
    order = backend.put(np.arange(len(images), dtype=np.int32))
    loaded = backend.load(network)
    rates = config.layer_rates(config.learning_rate)
    weights, total = None, float(len(images))
    if samples.weights is not None:
        weights = backend.put(samples.weights)
        total = float(samples.weights.sum(dtype=np.float64))
    result = backend.train(
        loaded, inputs, labels, order, rates, target=config.target, sample_weight=weights
    )
    backend.store(loaded, network)
    if not (np.isfinite(result.loss) and network.is_finite()):
        raise Diverged(
            f"training diverged at learning rate {config.learning_rate:.4g}: loss or weights are "
            "not finite; expected a lower learning rate"
        )
    return result.loss / total
