"""The regressor: any numbers as targets, standardised, by linear outputs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from mlpcore.checks import real_array
from mlpcore.errors import InputError
from mlpcore.estimators.base import OnlineMLP, parameterised
from mlpcore.estimators.fitting import StepperCache
from mlpcore.estimators.moments import Moments
from mlpcore.estimators.validation import Samples, can_train_in_parts, weights_of
from mlpcore.network.activation import HUBER
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: The squares of larger numbers, and their sums, may be infinite.
GREATEST_TARGET = 1e140


@parameterised
class OnlineMLPRegressor(RegressorMixin, OnlineMLP):  # type: ignore[misc]
    """A multilayer perceptron for regression, trained by true on-line back-propagation.

    Weights change after every single sample, as those of `OnlineMLPClassifier` do, by the gradient
    of Huber's loss, so that wrong targets do little harm. Outputs are linear. Targets, one or
    several of a sample, are standardised: in `fit` with the mean and the deviation of all, and in
    `partial_fit` with those of all so far. It trains on CPUs.

    X is converted to float32, but not scaled. Bring its values to about [-1, 1] first.

    Parameters
    ----------
    hidden_layer_sizes, learning_rate_init, alpha, max_iter, validation_fraction, n_iter_no_change,
    tol, callbacks, random_state, backend, threads, activation, init, decay, warm_up,
    learning_rate_end, learning_rate_ratio
        As those of `OnlineMLPClassifier`.
    early_stopping : bool, default=False
        Whether to hold out some of X, stop when the coefficient of determination there no longer
        rises, and keep the best network. It excludes `partial_fit`.
    warm_start : bool, default=False
        As that of `OnlineMLPClassifier`. It also keeps how targets are standardised.
    verbose : bool, default=False
        Whether `fit` prints the learning rate and the loss of each epoch.

    Attributes
    ----------
    n_features_in_, feature_names_in_, network_, coefs_, intercepts_, loss_curve_, loss_,
    best_loss_, validation_scores_, best_validation_score_, n_iter_, t_, n_layers_, n_outputs_
        As those of `OnlineMLPClassifier`, but losses are Huber's, of standardised targets: half
        the squared error up to k = 1.345, and k (error - k / 2) beyond. Scores are coefficients of
        determination. The network gives standardised targets.
    out_activation_ : "identity"
        That of the outputs.

    Raises
    ------
    ValueError
        As from `OnlineMLPClassifier`.

    Examples
    --------
    >>> from mlpcore import OnlineMLPRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mlp = OnlineMLPRegressor((50,), max_iter=20, random_state=0)
    >>> mlp.fit(scale(X)[::2], y[::2]).score(scale(X)[1::2], y[1::2]) > 0.4
    True
    """

    # A step changes a linear output by about its length times the error, for each layer, and is
    # unstable above 2 in all. Without a bound, samples of Student's t with two degrees of freedom
    # were not learnt; one of 0.3 slowed down those of a hundred words. A weight of 0 would be no
    # sample at all.
    _bounds: ClassVar[tuple[float, float]] = 1.0, float(np.finfo(np.float32).tiny)

    class_weight: ClassVar[None] = None
    out_activation_: ClassVar[str] = "identity"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_if(can_train_in_parts)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> OnlineMLPRegressor:
        """Trains one pass over the samples in the order given; returns the estimator.

        As `OnlineMLPClassifier.partial_fit`. A target is standardised by all up to itself.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
        """
        result: OnlineMLPRegressor = self._partial_fit(X, y, sample_weight)
        return result

    def _answers(self, outputs: AnyArray) -> AnyArray:
        mean, deviation = self._moments.scale
        result: Float64Array = mean + deviation * outputs
        return result.ravel() if self._is_flat else result

    def _learn_targets(self, targets: AnyArray, weights: Any, again: bool) -> None:
        numbers = self._columns(targets, first=not again)
        if not again:
            self._moments = Moments.of(numbers, weights_of(weights, None, numbers, targets))

    def _samples(self, inputs: Float32Array, targets: AnyArray, sample_weight: Any) -> Samples:
        standardised = self._moments.standardised(self._columns(targets))
        weights = weights_of(sample_weight, None, targets, targets)
        return Samples(inputs, standardised.astype(np.float32), weights)

    def _stream_samples(
        self, inputs: Float32Array, targets: AnyArray, sample_weight: Any
    ) -> Samples:
        first = not hasattr(self, "_network")
        numbers = self._columns(targets if first else real_array("y", targets), first)
        weights = weights_of(sample_weight, None, targets, targets)
        if first:
            origin = numbers[0 if weights is None else np.argmax(weights > 0)]
            known = Moments(origin, np.zeros(1 + 2 * numbers.shape[1]))
        else:
            known = self._moments
        standardised, after = known.after(numbers, weights)
        return Samples(inputs, standardised.astype(np.float32), weights, after)

    def _learn(self, samples: Samples, cache: StepperCache | None) -> float:
        self._moments = samples.moments
        return super()._learn(samples, cache)

    def _columns(self, targets: AnyArray, first: bool = False) -> Float64Array:
        """Targets (n, n_outputs) as float64, as many of a sample as before."""
        if first:
            self._is_flat = targets.ndim == 1
            self._n_outputs = 1 if self._is_flat else targets.shape[1]
        numbers = targets.astype(np.float64).reshape(len(targets), -1)
        if targets.ndim > 2 or numbers.shape[1] != self._n_outputs:
            found = " x ".join(map(str, targets.shape[1:])) or "1"
            raise InputError(f"y holds {found} numbers per sample: expected {self._n_outputs}")
        greatest = np.abs(numbers).max()
        if not greatest <= GREATEST_TARGET:  # NaN, too, which None becomes
            raise InputError(f"y holds {greatest:.4g}: expected numbers up to {GREATEST_TARGET:g}")
        return numbers

    def _held_out_score(self, outputs: Float32Array, held_out: Samples) -> float:
        return float(r2_score(held_out.targets, outputs, sample_weight=held_out.weights))

    def _settings(self) -> dict[str, Any]:
        return {"loss": HUBER}

    def _meaning(self) -> dict[str, Any]:
        return {"scale": self._moments.scale}

    @property
    def n_outputs_(self) -> int:
        """Outputs, one for each number of a target."""
        return self._n_outputs
