"""What a classifier with a trained network offers: predictions, and its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from mlpcore import backends
from mlpcore.backends.base import Backend, Stepper
from mlpcore.checks import check_array_like
from mlpcore.errors import InputError
from mlpcore.estimators.validation import INPUTS, canonical, float_rows, threads_of
from mlpcore.evaluation import evaluation, probabilities
from mlpcore.network.network import Network
from mlpcore.store.export import EstimatorNetwork
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics
from mlpcore.typing import AnyArray, Float32Array

#: Weights that keep a thread busy. With fewer, threads wait for each other longer than they
#: compute: a step of an 841-300-100-10 network takes one thread 14 us, a barrier a few us.
WEIGHTS_PER_THREAD = 2**18

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


#: A stepper learns or predicts at most so many samples a call; above, threads and blocks pay.
FEW = 32


@dataclass(frozen=True)
class StepperCache:
    """What calls of `partial_fit` with a few samples share, while the parameters stay the same."""

    parameters: tuple[Any, ...]  # compared by identity, because a value can be an array
    config: TrainingConfig
    rates: tuple[float, ...]  # the learning rate of each layer
    weight_decay: float
    codes: dict[Any, int]  # the place of each class
    stepper: Stepper


class FittedNetwork:
    """Predictions and weights of a network, for classifiers with these parameters and attributes.

    See `mlpcore.OnlineMLPClassifier` for their meaning.
    """

    backend: str
    threads: int | None
    classes_: AnyArray
    n_features_in_: int
    target_: float
    loss_curve_: list[float]
    validation_scores_: list[float] | None
    best_validation_score_: float | None
    t_: int
    _network: Network  # with the weights as they are now, unless there are steps
    _cache: StepperCache | None = None
    _seed: int
    _n_calls: int  # of partial_fit
    _history: list[EpochMetrics]
    _n_samples: int  # trained on

    def predict(self, X: ArrayLike) -> AnyArray:
        """The class with the greatest output for each row of X, (n_samples,)."""
        guesses = self._outputs(X).argmax(axis=1)
        return self.classes_[guesses]

    def decision_function(self, X: ArrayLike) -> Float32Array:
        """The network's outputs, float32 of shape (n_samples, n_classes).

        They are probabilities, or near +-`target_` with the loss "squared".

        For two classes, float32 of shape (n_samples,): half the difference of the second and
        the first output. A positive number stands for ``classes_[1]``.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return (outputs[:, 1] - outputs[:, 0]) * np.float32(0.5)
        return outputs

    def predict_proba(self, X: ArrayLike) -> Float32Array:
        """Estimates of the classes' probabilities, float32 of shape (n_samples, n_classes).

        With the loss "cross-entropy" they are the outputs. With "squared",
        `mlpcore.evaluation.probabilities` says how. The class that `predict` gives has the greatest
        one. Where the values matter, calibrate them with
        `sklearn.calibration.CalibratedClassifierCV`.
        """
        outputs = self._outputs(X)
        found = probabilities.of_network(self._network, outputs, self.target_, self._n_samples)
        return found.astype(np.float32)

    def predict_log_proba(self, X: ArrayLike) -> Float32Array:
        """Logarithms of `predict_proba`, of the same shape; that of 0 is -infinity."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _outputs(self, X: Any) -> Float32Array:
        check_is_fitted(self, "classes_")
        rows = float_rows(X, self)
        if rows is None:
            check_array_like("X", X)
            rows = canonical(validate_data(self, X, reset=False, **INPUTS))
        cache = self._cache  # which another thread may drop
        if cache is not None and (rows.shape[0] <= FEW or issparse(rows)):
            outputs = cache.stepper.predict(rows)
            if np.isfinite(outputs).all():
                return outputs
        network = self._current_network()
        return outputs_of(network, rows, self._get_backend(network))

    def _for_export(self) -> EstimatorNetwork:
        """What `mlpcore.export` writes."""
        check_is_fitted(self, "classes_")
        names = tuple(getattr(self, "feature_names_in_", ()))
        return EstimatorNetwork(
            self._current_network(), self.classes_, self.target_, self._n_samples, names
        )

    def _get_backend(self, network: Network) -> Backend:
        """What computes with a network."""
        threads = threads_of(self.threads, network.n_parameters // WEIGHTS_PER_THREAD)
        return backends.get(self.backend, threads)

    def _current_network(self) -> Network:
        """The network with the weights as they are now, which the caller must not change."""
        cache = self._cache
        return self._network if cache is None else cache.stepper.network

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())  # type: ignore[call-overload]  # not `__dict__` itself
        cache = state.get("_cache")
        if cache is not None:
            state |= {"_network": cache.stepper.network, "_cache": None}
        return state

    # ---- fitted attributes -------------------------------------------------------------

    @property
    def network_(self) -> Network:
        """The weights. Whoever reads them may change them."""
        self._network = self._current_network()
        self._cache = None
        return self._network

    @property
    def coefs_(self) -> list[Float32Array]:
        """Weights of each layer, (n_in, n_out) views."""
        return [weights.T for weights in self.network_.weights]

    @property
    def intercepts_(self) -> list[Float32Array]:
        """Biases of each layer, (n_out,) views."""
        return list(self.network_.biases)

    @property
    def loss_(self) -> float:
        """The last of `loss_curve_`."""
        return self.loss_curve_[-1]

    @property
    def best_loss_(self) -> float | None:
        """The lowest of `loss_curve_`; None with `early_stopping`."""
        return min(self.loss_curve_) if self.validation_scores_ is None else None

    @property
    def n_layers_(self) -> int:
        """Layers of neurons, the inputs included."""
        return len(self._network.layer_sizes)

    @property
    def n_outputs_(self) -> int:
        """Outputs, one for each class."""
        return int(self._network.layer_sizes[-1])

    @property
    def out_activation_(self) -> str:
        """The activation of the outputs."""
        return "tanh" if self._network.loss == "squared" else "softmax"

    @property
    def n_iter_(self) -> int:
        """Epochs and calls of `partial_fit` so far."""
        return len(self._history) + self._n_calls
