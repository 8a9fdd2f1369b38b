"""The training of the estimators: observers of `fit`, and the single pass of `partial_fit`."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import row_norms

from mlpcore.backends.base import Backend, Stepper
from mlpcore.errors import InputError
from mlpcore.estimators.validation import Samples, float_rows
from mlpcore.evaluation import evaluation
from mlpcore.network.activation import BINARY
from mlpcore.network.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Diverged, Observer, Trainer
from mlpcore.typing import Float32Array

#: Smaller inputs cannot overflow sums of float32: trained weights are far below 1e20.
NEVER_OVERFLOWS = 1e9


def outputs_of(network: Network, X: Float32Array, backend: Backend) -> Float32Array:
    """Outputs (n, n_classes) for X (n, n_features), or an InputError when a sum overflows."""
    values: Any = X
    if issparse(X):
        values = X.data
        outputs = backend.stepper(network).predict(X)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = evaluation.outputs(network, X, backend).astype(np.float32)
    greatest = float(np.abs(values).max(initial=0))
    bound = 0.0
    if greatest > NEVER_OVERFLOWS:  # where a sum overflows, outputs may be finite, but wrong
        bound = greatest * float(np.abs(network.weights[0]).sum(axis=1, dtype=np.float64).max())
    if bound > float(np.finfo(np.float32).max) or not np.isfinite(outputs).all():
        raise InputError(f"X holds {greatest:.4g}, too much for float32: expected about -1 to 1")
    return outputs


#: The loss still falls if what it fell in the second half of the learning exceeds this share of the
#: first epoch's loss. Epochs count by their learning rates, because at a rate of almost 0 no loss
#: falls. As many epochs again would gain about as much or less.
STILL_FALLS = 0.1


def copy_of(mlp: Any) -> Any:
    """A copy of a fitted estimator that training it further leaves as it is."""
    result = copy.copy(mlp)
    for name in ("_network", "loss_curve_", "validation_scores_"):
        setattr(result, name, copy.copy(getattr(result, name)))
    return result


class FitRecord(Observer):
    """Brings the fitted attributes of an estimator up to date after each epoch, and may end `fit`.

    Training stops when one of the functions, which get a copy of the estimator, returns true; or
    when the score of held-out samples no longer rises. Without such samples, it is the loss that
    falls no more; but with a deformation every epoch is new to the network, so its loss says less
    and stops nothing. The rule is that of scikit-learn's MLPClassifier: training stops after more
    than `n_iter_no_change` epochs in a row, none of which was better than the best by `tol`. With
    held-out samples, `best` is the network of the first epoch with the highest score.
    """

    def __init__(self, mlp: Any, held_out: Samples | None, functions: Sequence[Any]):
        self.mlp, self.held_out, self.functions = mlp, held_out, functions
        self.best: Network | None = None
        self._best_score, self._without_change = -np.inf, 0
        self._patience = math.inf if mlp.deformation and not held_out else mlp.n_iter_no_change
        if held_out:
            mlp.validation_scores_ = mlp.validation_scores_ or []

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Adds the epoch, and the network as it is after it; asks for a stop if it is time."""
        mlp, score, network = self.mlp, -metrics.loss, trainer.state.network
        if self.held_out:
            outputs = outputs_of(network, self.held_out.inputs, trainer.backend)
            score = mlp._held_out_score(outputs, self.held_out)
            mlp.validation_scores_.append(score)
            if score > self._best_score:
                mlp.best_validation_score_, self.best = score, network.copy()
        improved = score >= self._best_score + mlp.tol
        self._without_change = 0 if improved else self._without_change + 1
        self._best_score = max(score, self._best_score)
        mlp._network, mlp._history = network, trainer.state.history
        mlp.loss_curve_.append(metrics.loss)
        mlp.t_ += metrics.n_train
        stops = [function(copy_of(mlp), metrics) for function in self.functions]
        if self._without_change > self._patience or any(stops):
            trainer.request_stop()


class LossLines(Observer):
    """Prints the learning rate and the loss of each epoch."""

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """Prints a line."""
        print(f"epoch {metrics.epoch}, rate {metrics.learning_rate:.4g}, loss {metrics.loss:.6g}")


def split_callbacks(callbacks: Any) -> tuple[list[Any], list[Observer]]:
    """The functions among callbacks, and the Observers."""
    if not isinstance(callbacks, Sequence | None):
        raise InputError(f"callbacks {callbacks!r}: expected a list of functions or Observers")
    functions: list[Any] = []
    observers: list[Observer] = []
    for each in callbacks or ():
        if not (isinstance(each, Observer) or callable(each)) or isinstance(each, type):
            raise InputError(f"callbacks: {each!r}, expected functions or Observers")
        (observers if isinstance(each, Observer) else functions).append(each)
    return functions, observers


def still_falls(losses: Sequence[float], rates: Sequence[float], first: float) -> bool:
    """True if the loss still falls after epochs with these mean losses and learning rates.

    `first` is the loss of the first epoch of all, also of an earlier fit.
    """
    learnt = np.cumsum(rates)
    half = int(np.searchsorted(learnt, learnt[-1] / 2))
    return losses[half] - losses[-1] > STILL_FALLS * first


def warn_of_training(mlp: Any, samples: Samples, n_before: int, complete: bool) -> None:
    """Warns, as `fit` ends, of a learning rate that was too high, or of a loss that still falls.

    There were `n_before` epochs before `fit`, which is `complete` if nothing stopped it.
    """
    epochs = mlp._history[n_before:]
    losses = [metrics.loss for metrics in epochs]
    rates = [metrics.learning_rate for metrics in epochs]
    outputs = outputs_of(mlp._network, samples.inputs, mlp._get_backend(mlp._network))
    if np.ptp(samples.targets, axis=0).any() and not np.ptp(outputs, axis=0).any():
        answer = mlp._answers(outputs)[0]
        text = (
            f"The network answers {answer} whatever the sample: learning_rate_init "
            f"{mlp.learning_rate_init} is too high. Lower it, or scale X."
        )
        if not issparse(samples.inputs) and not np.ptp(samples.inputs, axis=0).any():
            text = f"The network answers {answer}, because all rows of X are the same."
    elif complete and still_falls(losses, rates, mlp._history[0].loss):
        text = (
            f"The loss is still falling after {len(epochs)} epochs, to {losses[-1]:.4g}. "
            "The network may learn noise: compare early_stopping=True and a larger max_iter by the "
            "score of held-out samples."
        )
    else:
        return
    warnings.warn(text, ConvergenceWarning, stacklevel=4)  # of who called fit


def bounded(mlp: Any, samples: Samples) -> Samples:
    """Samples whose weights above the least make no step eta w (1 + |x|^2) longer than the longest.

    A longer one changes the answer to a sample x by so much that its error grows.
    """
    longest, least = mlp._bounds
    if samples.weights is None and least >= 1:
        return samples
    squares = row_norms(samples.inputs, squared=True).astype(np.float64)
    bound = np.maximum(longest / (mlp.learning_rate_init * (1 + squares)), least)
    weights = 1.0 if samples.weights is None else samples.weights
    return replace(samples, weights=np.minimum(weights, bound).astype(np.float32))


#: The weight decay "auto" times the number of samples. A decay that does not depend on their number
#: costs large sets accuracy, or leaves small ones to be learnt by heart.
DECAY = 5.0


def decay_of(mlp: Any, n_samples: float, backend: Backend) -> float:
    """The weight decay of training on so many samples, or on a stream of infinitely many."""
    if mlp.alpha != "auto":
        return float(mlp.alpha)
    if not backend.can_weight or mlp.deformation is not None:
        return 0.0
    # The loss of several labels is a sum over them: two weigh as much as one of two classes.
    return DECAY / n_samples * (mlp.n_outputs_ / 2 if mlp._settings().get("loss") == BINARY else 1)


#: A stepper learns or predicts at most so many samples a call; above, threads and blocks pay.
FEW = 32


@dataclass(frozen=True)
class StepperCache:
    """Shared by calls of `partial_fit` with a few samples, while the parameters stay the same."""

    parameters: tuple[Any, ...]  # compared by identity, because a value can be an array
    config: TrainingConfig
    rates: tuple[float, ...]  # the learning rate of each layer
    weight_decay: float
    codes: dict[Any, int]  # the place of each class, if there are some
    stepper: Stepper


def few_samples(
    mlp: Any, cache: StepperCache | None, X: Any, y: Any, sample_weight: Any
) -> Samples | None:
    """Samples like those of the steps before, or None if scikit-learn must check them."""
    rows = None if cache is None else float_rows(X, mlp)
    if cache is None or rows is None or type(y) not in (list, np.ndarray) or len(y) != len(rows):
        return None
    try:
        samples: Samples = mlp._stream_samples(rows, y, sample_weight)
    except TypeError:  # labels that no dictionary takes
        return None
    return samples


def train_by_steps(samples: Samples, cache: StepperCache) -> float:
    """Learns samples in their order; returns their mean loss, weighted as they are."""
    config, weights = cache.config, samples.weights
    data, rates = (samples.inputs, samples.targets), (cache.rates, config.target)
    loss = cache.stepper.train(*data, *rates, weights, cache.weight_decay).loss
    if not math.isfinite(loss):
        raise Diverged(
            f"training diverged at learning rate {config.learning_rate:.4g}: the loss is not "
            "finite; expected a lower learning rate"
        )
    total = len(samples.targets) if weights is None else weights.sum(dtype=np.float64)
    return loss / float(total)
