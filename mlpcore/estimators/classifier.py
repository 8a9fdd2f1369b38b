"""The classifier: scikit-learn's conventions around this package's networks and training loop."""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.checks import check_array_like
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.estimators.fitting import (
    FEW,
    Plateau,
    StepperCache,
    copy_of,
    decay_of,
    few_samples,
    observers_of,
    outputs_of,
    train_by_steps,
    warn_of_steps,
    warn_of_training,
)
from mlpcore.estimators.validation import (
    INPUTS,
    Samples,
    can_train_in_parts,
    canonical,
    check_known,
    check_parameters,
    check_samples,
    classes_of,
    deformation_of,
    encode,
    float_rows,
    image_shape_of,
    known_classes,
    seed_of,
    threads_of,
    weights_of,
)
from mlpcore.evaluation import probabilities
from mlpcore.network.activation import Activation, Init, Loss
from mlpcore.network.architecture import hidden_layers_of
from mlpcore.network.network import Network
from mlpcore.report.console import Console
from mlpcore.store.export import EstimatorNetwork
from mlpcore.training.config import PAPER_RATIO, USUAL_TARGET, Decay, TrainingConfig
from mlpcore.training.sources import ArraySource, Source, SparseSource
from mlpcore.training.state import EpochMetrics, TrainingState
from mlpcore.training.trainer import Diverged, Observer, Trainer
from mlpcore.typing import AnyArray, Float32Array

#: Weights that keep a thread busy. With fewer, threads wait for each other longer than they
#: compute: a step of an 841-300-100-10 network takes one thread 14 us, a barrier a few us.
WEIGHTS_PER_THREAD = 2**18

#: Parameters that `TrainingConfig` takes as they are.
PASSED_ON = set(TrainingConfig.__struct_fields__) - {"deformation"}

#: The epoch of the first `partial_fit`, for random numbers; `fit` never gets this far, so the
#: two do not draw the same ones.
FIRST_PARTIAL_EPOCH = 2**31

#: `partial_fit` keeps the losses of its last calls, this many or up to twice as many.
LONGEST_CURVE = 10_000

#: A function of the classifier as it is after an epoch, and of the epoch's metrics.
Callback = Observer | Callable[[Any, EpochMetrics], object]


@dataclass(kw_only=True, repr=False, eq=False)
class OnlineMLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
        Weight decay on CPUs: weights, but not biases, shrink by exp(-eta alpha) a sample, eta being
        its learning rate. It is decoupled from the gradient, and stands for an L2 penalty of
        alpha / 2. "auto" is 5 / n for n samples, so that an epoch decays as much whatever n. It is
        0 on a GPU, and where samples have no end: in `partial_fit`, and with a deformation.
    max_iter : int, default=100
        Epochs that `fit` trains, if the loss or anything else does not stop it.
    deformation : DeformationParameters, default=None
        How the images of X are deformed, anew for every epoch. None leaves them as they are. A
        search finds its parameters as ``deformation__alpha`` and so on.
    image_shape : (int, int), default=None
        Height and width of the images, whose pixels, row by row, are the features. None stands
        for square images. Only `deformation` needs it.
    early_stopping : bool, default=False
        Whether to hold out some of X, stop when the accuracy there rises no more, and keep the
        network with the best. It excludes `partial_fit`.
    validation_fraction : float, default=0.1
        Share of X that `early_stopping` holds out, of each class alike.
    n_iter_no_change, tol : int, default=10, and float, default=1e-4
        `fit` stops after more than so many epochs in a row without a loss lower than the lowest
        by `tol`; or, with `early_stopping`, without an accuracy higher than the highest by it.
        Infinity stops nothing. With a deformation `early_stopping` alone stops it.
    class_weight : dict or "balanced", default=None
        A factor of the learning rate for the samples of each class, 1 if it is not named.
        "balanced" gives all classes the same sum, and excludes `partial_fit`.
    callbacks : list of callables or Observers, default=None
        What `fit` calls after each epoch: ``callback(estimator, metrics)``, with a fitted copy of
        the estimator, and `mlpcore.training.EpochMetrics`. Training stops when it returns true.
        Any `mlpcore.training.Observer` will do, too.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, orders and deformations. The same whole number, 0 to
        2**64 - 1, gives the same weights bit for bit on the same backend with any `threads`.
    warm_start : bool, default=False
        Whether the next `fit` continues with the random numbers of the next epochs, as if it
        were one long `fit`. Each goes all the way to a `learning_rate_end`, if there is one, and
        to 0 with another `decay` than "factor".
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
        "cross-entropy" has softmax outputs: `predict_proba` gives them as they are. "squared" is
        1/2 |y - t|^2, with a target t of `target` for the class and -`target` for the others,
        and scaled tanh outputs.
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
        learnt faster with 1.5, and a `learning_rate_ratio` of 2 for two hidden layers
        (docs/recipe.md).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
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
        Samples that were learnt so far, each as often as it was.
    n_layers_, n_outputs_ : int
        Layers of neurons, the inputs included, and outputs.
    out_activation_ : {"softmax", "tanh"}
        That of the outputs: "tanh" is the scaled one of the loss "squared".

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

    _cache = None  # of `partial_fit`; its stepper has the weights as they are now

    hidden_layer_sizes: int | Sequence[int] | AnyArray | str = field(default=(300,), kw_only=False)
    learning_rate_init: float = 1e-2
    alpha: float | str = "auto"
    max_iter: int = 100
    deformation: DeformationParameters | None = None
    image_shape: tuple[int, int] | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-4
    class_weight: Mapping[Any, float] | str | None = None
    callbacks: Sequence[Callback] | None = None
    random_state: int | np.random.RandomState | None = None
    warm_start: bool = False
    verbose: bool = False
    backend: str = "cpu"
    threads: int | None = None
    activation: Activation = "relu"
    loss: Loss = "cross-entropy"
    init: Init = "glorot"
    decay: Decay = "linear"
    warm_up: int = 0
    learning_rate_end: float | None = None
    learning_rate_ratio: float = PAPER_RATIO
    target: float = USUAL_TARGET

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> OnlineMLPClassifier:
        """Sets parameters by name, those of `deformation` too, as ``deformation__alpha``.

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

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> OnlineMLPClassifier:
        """Trains until the loss falls no more, or for `max_iter` epochs; returns the estimator.

        It warns of features far outside [-1, 1], of images in [0, 1] to deform, and of labels that
        look like a regression target; and with scikit-learn's ConvergenceWarning when the learning
        rate was too high, or the loss still falls at the end.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Finite numbers, about [-1, 1]. One thread learns sparse rows, and makes none dense.
        y : array-like of shape (n_samples,)
            Labels of 2 to 256 classes: whole numbers, texts, anything that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            A factor of each sample's learning rate, 0 or more; None stands for 1. Weights, those
            of classes included, are divided by their mean, so that only their ratios matter.
        """
        again = self.warm_start and hasattr(self, "classes_")
        check_parameters(self)
        inputs, labels = check_samples(self, X, y, reset=not again)
        if again:  # a copy, so that this one stays as it is if training fails
            check_known("y", np.unique(labels), self.classes_)
            mlp = copy_of(self)
            mlp.best_validation_score_ = None
        else:
            mlp = self._new(classes_of(labels))
        n_before = len(mlp._history)
        config = mlp._config(n_before + self.max_iter)
        samples = mlp._samples(inputs, labels, sample_weight).with_mean_weight_1()
        if not again:
            mlp._network = mlp._new_network(config)
        held_out = None
        if self.early_stopping:
            samples, held_out = samples.split(self.validation_fraction, config.seed)
        stopping = Plateau(mlp, held_out)
        observers = [stopping, *observers_of(self.callbacks, mlp)]
        mlp._n_samples, mlp.target_ = len(samples.codes), config.target
        # What continues after the epochs of `_history`.
        state = TrainingState(mlp._network, history=mlp._history)
        backend = mlp._get_backend(mlp._network)
        source = mlp._source(samples, config, backend)
        with Console(sys.stdout) if self.verbose else nullcontext(Observer()) as console:
            observers.append(console)
            decay = decay_of(mlp, len(samples.codes), backend)
            complete = Trainer(config, source, backend, observers, state, decay).run()
        warn_of_training(mlp, samples, n_before, complete)
        mlp._network = stopping.best or mlp._network
        self.__dict__.update(mlp.__dict__)
        return self

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
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that may come. The first call needs them; later calls, also after `fit`,
            may repeat them.
        sample_weight : array-like of shape (n_samples,), default=None
            A factor of each sample's learning rate, 0 or more; None stands for 1. A warning names
            a weight that makes a step unstable.
        """
        first = not hasattr(self, "classes_")
        cache = self._cache
        if cache and not all(map(operator.is_, cache.parameters, PARAMETERS(self))):
            cache = None
        if cache is None:
            check_parameters(self)
        known = known_classes(classes, None if first else self.classes_)
        mlp, samples = self, few_samples(self, cache, X, y, sample_weight)
        if samples is None:
            inputs, labels = check_samples(self, X, y, reset=first)
            mlp = self._new(known) if first else self
            samples = mlp._samples(inputs, labels, sample_weight)
        warn_of_steps(samples, self.learning_rate_init)
        try:
            loss = mlp._learn(samples, cache)
        except Diverged:
            for name in ("classes_", "_network", "_cache"):
                self.__dict__.pop(name, None)
            raise
        mlp.loss_curve_.append(loss)
        if len(mlp.loss_curve_) >= 2 * LONGEST_CURVE:
            del mlp.loss_curve_[:LONGEST_CURVE]
        mlp._n_calls += 1
        mlp._n_samples += len(samples.codes)
        mlp.t_ += len(samples.codes)
        if first:
            self.__dict__.update(mlp.__dict__)
        return self

    def _learn(self, samples: Samples, cache: StepperCache | None) -> float:
        """Learns samples in their order, by steps if these are few; returns their mean loss."""
        few = len(samples.codes) <= FEW or issparse(samples.inputs)
        if cache and few:
            return train_by_steps(samples, cache)
        # One epoch by a constant factor has one rate, the first.
        config = structs.replace(
            self._config(epochs=1), decay="factor", learning_rate_end=None, warm_up=0
        )
        if not hasattr(self, "_network"):
            self._network = self._new_network(config)
        network, self.target_ = self._current_network(), config.target
        backend = self._get_backend(network)
        decay = decay_of(self, np.inf, backend)
        if not few or not config.deformation.is_identity:
            state = TrainingState(network.copy())  # other threads may predict by the old one
            epoch = FIRST_PARTIAL_EPOCH + self._n_calls + len(self._history)
            source = self._source(samples, config, backend, epoch)
            Trainer(config, source, backend, (), state, decay).run()
            self._network, self._cache = state.network, None
            return state.history[0].loss
        self._cache = StepperCache(
            PARAMETERS(self),
            config,
            config.layer_rates(config.learning_rate),
            decay,
            {label: code for code, label in enumerate(self.classes_.tolist())},
            backend.stepper(network),
        )
        return train_by_steps(samples, self._cache)

    def _source(
        self,
        samples: Samples,
        config: TrainingConfig,
        backend: Backend,
        single_pass: int | None = None,
    ) -> Source:
        """The samples for a trainer; `single_pass` is as for `ArraySource`."""
        inputs, codes, weights = samples.inputs, samples.codes, samples.weights
        n_classes = len(self.classes_)
        if issparse(inputs):
            return SparseSource(inputs, codes, n_classes, config.seed, weights)
        shape = 1, self.n_features_in_  # one row, if no other shape is needed
        if self.deformation is not None or self.image_shape is not None:
            shape = image_shape_of(self.image_shape, self.n_features_in_)
        images, drawing = inputs.reshape(-1, *shape), (config.seed, config.deformation)
        return ArraySource(images, codes, n_classes, backend, *drawing, weights, single_pass)

    def _config(self, epochs: int) -> TrainingConfig:
        return TrainingConfig(
            hidden_layers=hidden_layers_of(self.hidden_layer_sizes),
            epochs=epochs,
            learning_rate=self.learning_rate_init,
            deformation=deformation_of(self.deformation, self.classes_),
            seed=self._seed,
            **{name: value for name, value in vars(self).items() if name in PASSED_ON},
        )

    def _samples(self, inputs: Float32Array, labels: AnyArray, sample_weight: Any) -> Samples:
        codes = encode(self.classes_, labels)
        weights = weights_of(sample_weight, self.class_weight, self.classes_, labels)
        return Samples(inputs, codes, weights)

    def _new(self, classes: AnyArray) -> Any:
        """A copy before its first sample, yet without a network."""
        mlp = copy.copy(self)
        mlp.classes_, mlp._seed = classes, seed_of(self.random_state)
        mlp.loss_curve_, mlp._history, mlp._n_samples, mlp._n_calls = [], [], 0, 0
        mlp.t_, mlp._cache = 0, None
        mlp.validation_scores_ = mlp.best_validation_score_ = None
        return mlp

    def _new_network(self, config: TrainingConfig) -> Network:
        return config.new_network((self.n_features_in_, *config.hidden_layers, len(self.classes_)))

    # ---- predictions -------------------------------------------------------------------

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
        shares = probabilities.of_network(self._network, outputs, self.target_, self._n_samples)
        return shares.astype(np.float32)

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
        """The network and the names that `mlpcore.export` writes."""
        check_is_fitted(self, "classes_")
        names = tuple(getattr(self, "feature_names_in_", ()))
        return EstimatorNetwork(
            self._current_network(), self.classes_, self.target_, self._n_samples, names
        )

    def _get_backend(self, network: Network) -> Backend:
        """The backend that computes with a network."""
        threads = threads_of(self.threads, network.n_parameters // WEIGHTS_PER_THREAD)
        return backends.get(self.backend, threads)

    def _current_network(self) -> Network:
        """The network with the weights as they are now, which the caller must not change."""
        cache = self._cache
        return self._network if cache is None else cache.stepper.network

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())  # not `__dict__` itself
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


OnlineMLPClassifier.__module__ = "mlpcore"  # where pickles look for it; this module may move
del OnlineMLPClassifier.__dataclass_fields__  # Dask and others would compare nothing else

#: All parameters of a classifier.
PARAMETERS = operator.attrgetter(*OnlineMLPClassifier._get_param_names())
