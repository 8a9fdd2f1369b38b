"""The classifier: labels, probabilities and deformed images."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call

from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError, brief
from mlpcore.estimators.base import OnlineMLP, parameterised
from mlpcore.estimators.validation import (
    Samples,
    can_train_in_parts,
    classes_of,
    deformation_of,
    encode,
    indicator,
    n_columns,
    weights_of,
)
from mlpcore.evaluation import probabilities
from mlpcore.network.activation import BINARY, LOSSES, Loss
from mlpcore.training.config import USUAL_TARGET
from mlpcore.typing import AnyArray, Float32Array


@parameterised
class OnlineMLPClassifier(ClassifierMixin, OnlineMLP):  # type: ignore[misc]
    """A multilayer perceptron trained by true on-line back-propagation.

    Weights change after every single sample (batch size 1, no momentum). Each epoch presents the
    samples in a new random order. By default hidden neurons are rectifiers, outputs are a softmax
    with cross-entropy, and the learning rate falls linearly to 0.

    X is converted to float32, but not scaled. Bring its values to about [-1, 1] first, and those
    of images to deform to exactly this range.

    The parameters from `activation` on are the settings of a recipe, which few change.
    ``activation="tanh", loss="squared", init="uniform", decay="factor",
    learning_rate_init=0.001, alpha=0`` are those of the paper (Cireşan et al. 2010,
    "Architectures").

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(300,)
        Neurons of each hidden layer, or the name of one of the paper's networks, such as "net1".
    learning_rate_init : float, default=0.01
        Learning rate of the first epoch, and of `partial_fit`.
    alpha : float or "auto", default="auto"
        Weight decay on CPUs: weights, but not biases, shrink by exp(-eta alpha) per sample, eta
        being its learning rate. It is decoupled from the gradient, and stands for an L2 penalty of
        alpha / 2. "auto" is 5 / n for n samples, so that the decay of an epoch does not depend on
        n, times half the labels if y is a matrix of labels, over which the loss is a sum. It is 0
        on a GPU, and where samples have no end: in `partial_fit`, and with a deformation.
    max_iter : int, default=100
        Epochs that `fit` trains, if the loss or anything else does not stop it.
    deformation : DeformationParameters, default=None
        How the images of X are deformed, anew for every epoch. None leaves them as they are. A
        search finds its parameters as ``deformation__alpha`` and so on.
    image_shape : (int, int), default=None
        Height and width of the images, whose pixels, row by row, are the features. None stands
        for square images. Only `deformation` needs it.
    early_stopping : bool, default=False
        Whether to hold out some of X, stop when the accuracy there no longer rises, and keep the
        best network. It excludes `partial_fit`.
    validation_fraction : float, default=0.1
        Share of X that `early_stopping` holds out, the same for each class.
    n_iter_no_change, tol : int, default=10, and float, default=1e-4
        `fit` stops after more than so many epochs in a row without a loss lower than the lowest
        by `tol`; or, with `early_stopping`, without an accuracy higher than the highest by it.
        Infinity stops nothing. With a deformation `early_stopping` alone stops it.
    class_weight : dict or "balanced", default=None
        A factor of the learning rate for the samples of each class, 1 if it is not named.
        "balanced" gives all classes the same sum, and excludes `partial_fit`. Both exclude a
        matrix y.
    callbacks : list of callables or Observers, default=None
        What `fit` calls after each epoch: ``callback(estimator, metrics)``, with a fitted copy of
        the estimator, and `mlpcore.training.EpochMetrics`. Training stops when it returns true.
        They may also be of the type `mlpcore.training.Observer`.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, orders and deformations. The same whole number, 0 to
        2**64 - 1, gives the same weights bit for bit on the same backend with any `threads`.
    warm_start : bool, default=False
        Whether the next `fit` continues with the random numbers of the next epochs, as if it
        were one long `fit`; with `early_stopping`, from the network with the highest accuracy.
        Each goes all the way to a `learning_rate_end`, if there is one, and to 0 with another
        `decay` than "factor".
    verbose : bool, default=False
        Whether `fit` prints a line for each epoch. Its validation error is that of all of X,
        undeformed, after the epoch.
    backend : str, default="cpu"
        "cpu", "cuda", "auto" or another name that `mlpcore.backends.get` knows.
    threads : int, default=None
        Threads on a CPU. None takes one for each 262,144 weights, at most as many as there are
        cores; in a worker process, such as that of a search with `n_jobs`, its share of them.
    activation : {"relu", "tanh"}, default="relu"
        Of the hidden neurons: max(0, a), or 1.7159 tanh(0.6666 a).
    loss : {"cross-entropy", "squared"}, default="cross-entropy"
        "cross-entropy" has softmax outputs, or a sigmoid for each column of a matrix y:
        `predict_proba` gives them as they are. "squared" is 1/2 |y - t|^2, with a target t of
        `target` for the class and -`target` for the others, and scaled tanh outputs.
    init : {"glorot", "he", "uniform"}, default="glorot"
        Initial weights: scaled by the numbers of inputs and neurons of each layer, or of inputs
        only, for the activation "relu"; or uniform in [-0.05, 0.05].
    decay : {"linear", "factor"}, default="linear"
        How the learning rate of `fit` falls: in small steps to 0, or by a constant factor from
        epoch to epoch.
    warm_up : int, default=0
        Number of samples over which the learning rate of `fit` rises from 0.
    learning_rate_end : float, default=None
        Learning rate of the last epoch; in between it changes by a constant factor. None stops
        where the paper's schedule, three decades in 2,000 epochs, would be. Only for the `decay`
        "factor".
    learning_rate_ratio : float, default=1.0
        Ratio of each layer's learning rate to that of the next layer. The learning rate is their
        geometric mean.
    target : float, default=1.0
        Only for the `loss` "squared": target of the output for the class, below 1.7159. MNIST is
        learned faster with 1.5, and a `learning_rate_ratio` of 2 for two hidden layers
        (docs/recipe.md).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; 0, 1 ... of a matrix y.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names.
    network_ : Network
        The weights. Two classes have two outputs, too.
    coefs_, intercepts_ : list of ndarray of shape (n_in, n_out) and (n_out,)
        Weights and biases of each layer, float32. They are views of the network as it is when they
        are read: writing changes it until the next `partial_fit`.
    loss_curve_ : list of float
        Mean loss for each epoch or `partial_fit`, each sample just before its update. Of many
        calls of `partial_fit`, the last 10,000 or more are kept.
    loss_ : float
        The last of `loss_curve_`.
    target_ : float
        `target` of the last training.
    best_loss_ : float
        The lowest of `loss_curve_`; None with `early_stopping`.
    validation_scores_ : list of float
        Accuracy on the held-out samples after each epoch; None without `early_stopping`.
    best_validation_score_ : float
        The highest of the last `fit`, that of `network_`; None without `early_stopping`.
    n_iter_ : int
        Epochs and calls of `partial_fit` so far.
    t_ : int
        Samples learned so far, counting repetitions.
    n_layers_, n_outputs_ : int
        Layers of neurons, the inputs included, and outputs.
    out_activation_ : {"softmax", "logistic", "tanh"}
        That of the outputs: "logistic" of a matrix y, and "tanh", scaled, of the loss "squared".

    Raises
    ------
    ValueError
        From any method, when a parameter or X or y cannot be used: an InputError, or one of
        scikit-learn. It is a `Diverged` when weights or loss do not stay finite.

    Examples
    --------
    >>> from mlpcore import OnlineMLPClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 8 - 1  # 0 ... 16 to [-1, 1]
    >>> mlp = OnlineMLPClassifier((50,), max_iter=30, random_state=0)
    >>> mlp.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    True
    """

    _bounds: ClassVar[tuple[float, float]] = 4.0, 1.0  # as in cpu_simd/mixture.c
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineMLP._parameter_constraints,
        "loss": [StrOptions({*LOSSES})],
    }

    _is_multilabel = False  # whether y is a matrix

    deformation: DeformationParameters | None = None  # type: ignore[misc]
    image_shape: tuple[int, int] | None = None  # type: ignore[misc]
    class_weight: Mapping[Any, float] | str | None = None
    loss: Loss = "cross-entropy"
    target: float = USUAL_TARGET

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self._takes_matrices()
        return tags

    def _takes_matrices(self) -> bool:
        """Whether y may be a matrix."""
        return self.loss == "cross-entropy" and self.class_weight is None

    def set_params(self, **params: Any) -> OnlineMLPClassifier:
        """Sets parameters by name, including those of `deformation`, as ``deformation__alpha``.

        The deformation is replaced by another one with the new values, never changed.
        """
        prefix = "deformation__"
        own = {name: value for name, value in params.items() if not name.startswith(prefix)}
        super().set_params(**own)
        if len(own) < len(params):
            changes = {k.removeprefix(prefix): params[k] for k in params if k not in own}
            if not isinstance(self.deformation, DeformationParameters):
                raise InputError(
                    f"deformation {self.deformation!r}: expected DeformationParameters"
                )
            self.deformation = self.deformation.set_params(**changes)
        return self

    # ---- training ----------------------------------------------------------------------

    @available_if(can_train_in_parts)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> OnlineMLPClassifier:
        """Trains one pass over the samples in the order given; returns the estimator.

        The learning rate is `learning_rate_init`. Many calls do the same as one call with all
        samples, apart from rounding and from `deformation`, for which each call is an epoch. Calls
        with up to 32 samples, or with sparse ones, cost little beside their steps, and give the
        same bits however the samples are cut into such calls. Shuffle sorted samples first.
        `callbacks` are not called. Other threads may predict meanwhile, but not train. If it raises
        `Diverged`, the estimator is not fitted any more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or matrix of shape (n_samples, n_classes)
        classes : array-like of shape (n_classes,), default=None
            All labels that may come, which are 0, 1 ... of a matrix. The first call needs them;
            later calls, also after `fit`, may repeat them.
        sample_weight : array-like of shape (n_samples,), default=None
            A factor of each sample's learning rate, 0 or more; None stands for 1. One above 1 that
            makes a step unstable is lowered, in `fit` too.
        """
        known = SimpleNamespace(classes_=getattr(self, "classes_", None))
        if _check_partial_fit_first_call(known, classes):
            known._is_multilabel = n_columns(y) > 0
            found = classes_of(y if known._is_multilabel else classes, "classes")
            if not np.array_equal(known.classes_, found):
                raise InputError(f"classes {brief(classes)}: expected {brief(found.tolist())}")
        result: OnlineMLPClassifier = self._partial_fit(X, y, sample_weight, **vars(known))
        return result

    def _learn_targets(self, targets: AnyArray, weights: Any, again: bool) -> None:
        if not again:
            self.classes_: AnyArray = classes_of(targets, "y")
            self._is_multilabel = n_columns(targets) > 0

    def _samples(self, inputs: Float32Array, targets: AnyArray, sample_weight: Any) -> Samples:
        if self._is_multilabel:
            wanted = indicator(targets, len(self.classes_))
            return Samples(inputs, wanted, weights_of(sample_weight, None, wanted, wanted))
        codes = encode(self._cache.codes if self._cache else self._codes(), targets)
        targets = np.asarray(targets)
        weights = weights_of(sample_weight, self.class_weight, self.classes_, targets)
        return Samples(inputs, codes, weights)

    def _deformation(self) -> DeformationParameters:
        known = self.classes_[:0] if self._is_multilabel else self.classes_
        return deformation_of(self.deformation, known)

    def _settings(self) -> dict[str, Any]:
        if not self._is_multilabel:
            return {}
        if not self._takes_matrices():
            raise InputError(
                f"loss {self.loss!r} and class_weight {brief(self.class_weight)}: expected "
                "'cross-entropy' and None, as y has a column for each label"
            )
        return {"loss": BINARY}

    def _held_out_score(self, outputs: Float32Array, held_out: Samples) -> float:
        if self._is_multilabel:
            right = (self._answers(outputs) == held_out.targets).all(axis=1)
        else:
            right = outputs.argmax(axis=1) == held_out.targets
        return float(np.average(right, weights=held_out.weights))

    # ---- predictions -------------------------------------------------------------------

    def _answers(self, outputs: AnyArray) -> AnyArray:
        if self._is_multilabel:
            return (outputs > 0.5).astype(np.int64)
        return self.classes_[outputs.argmax(axis=1)]

    def decision_function(self, X: ArrayLike) -> Float32Array:
        """The network's outputs, float32 of shape (n_samples, n_classes).

        They are probabilities, or near +-`target_` with the loss "squared".

        For two classes, float32 of shape (n_samples,): half the difference of the second and
        the first output. A positive number stands for ``classes_[1]``. For a matrix of labels
        probabilities minus 0.5.
        """
        outputs = self._outputs(X)
        if self._is_multilabel:
            return outputs - np.float32(0.5)
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
        shares = probabilities.of_network(self._network, outputs, self.target_, self._n_samples)
        return shares.astype(np.float32)

    def predict_log_proba(self, X: ArrayLike) -> Float32Array:
        """Logarithms of `predict_proba`, of the same shape; that of 0 is -infinity."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _meaning(self) -> dict[str, Any]:
        return {"classes": self.classes_, "target": self.target_, "n_samples": self._n_samples}

    @property
    def n_outputs_(self) -> int:
        """Outputs, one for each class."""
        return len(self.classes_)

    @property
    def out_activation_(self) -> str:
        """The activation of the outputs."""
        names = {"squared": "tanh", BINARY: "logistic"}
        return names.get(self._network.loss, "softmax")
