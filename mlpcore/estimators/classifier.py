"""The classifier: scikit-learn's conventions around this package's networks and training loop."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.estimators import passes
from mlpcore.estimators.fitting import Fitting
from mlpcore.estimators.monitoring import EarlyStopping, observers_of
from mlpcore.estimators.parameters import (
    check_classes,
    check_parameters,
    deformation_of,
    encode,
    hidden_layers_of,
    image_shape_of,
    known_classes,
    seed_of,
)
from mlpcore.estimators.prediction import FittedNetwork
from mlpcore.estimators.samples import Samples, check_samples, weights_of
from mlpcore.network.activation import Activation, Init, Loss
from mlpcore.report.console import Console
from mlpcore.training.config import USUAL_TARGET, TrainingConfig
from mlpcore.training.schedule import PAPER_RATIO, Decay
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Diverged, Observer, Trainer
from mlpcore.typing import AnyArray, Float32Array

#: The epoch of the first `partial_fit`, for random numbers; `fit` never gets this far, so the
#: two do not draw the same ones.
FIRST_PARTIAL_EPOCH = 2**31

#: A function of the classifier as it is after an epoch, and of the epoch's metrics.
Callback = Observer | Callable[[Any, EpochMetrics], object]


class OnlineMLPClassifier(FittedNetwork, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A multilayer perceptron trained by true on-line back-propagation.

    Weights change after every single sample (batch size 1, no momentum). Each epoch presents the
    samples in a new random order. By default hidden neurons are rectifiers, outputs are a softmax
    with cross-entropy, and the learning rate falls linearly to 0. ``activation="tanh",
    loss="squared", init="uniform", decay="factor", learning_rate_init=0.001`` are the settings of
    the paper (Cireşan et al. 2010, "Architectures").

    X is converted to float32, but not scaled. Bring its values to about [-1, 1] first, and those
    of images to deform to exactly this range, with a background of -1.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(300,)
        Neurons of each hidden layer, or the name of one of the paper's networks, such as "net1".
    learning_rate_init : float, default=0.01
        Learning rate of the first epoch, and of `partial_fit`.
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
    max_iter : int, default=100
        Epochs that `fit` trains, if nothing stops it.
    deformation : DeformationParameters, default=None
        How the images of X are deformed, anew for every epoch. None leaves them as they are. A
        search finds its parameters as ``deformation__alpha`` and so on.
    image_shape : (int, int), default=None
        Height and width of the images, whose pixels, row by row, are the features. None stands
        for square images. Only `deformation` needs it.
    early_stopping : bool, default=False
        Whether to hold out some of X, stop when the accuracy there rises no more, and keep the
        network with the best.
    validation_fraction : float, default=0.1
        Share of X that `early_stopping` holds out, of each class alike.
    n_iter_no_change : int, default=10
        `early_stopping` stops after more than so many epochs without an accuracy better than
        the best by `tol`.
    tol : float, default=1e-4
        See `n_iter_no_change`.
    class_weight : dict or "balanced", default=None
        A factor of the learning rate for the samples of each class, 1 if it is not named.
        "balanced" gives all classes the same sum.
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
        Weights and biases of each layer, float32. They are views: writing changes the network.
    loss_curve_ : list of float
        Mean loss for each epoch or `partial_fit`, each sample just before its update.
    loss_ : float
        The last of `loss_curve_`.
    target_ : float
        `target` of the last training.
    validation_scores_ : list of float
        Accuracy on the held-out samples after each epoch; None without `early_stopping`.
    best_validation_score_ : float
        The highest of the last `fit`, that of `network_`; None without `early_stopping`.
    n_iter_ : int
        Epochs and calls of `partial_fit` so far.

    Raises
    ------
    InputError
        A ValueError, from any method, when a parameter or X or y cannot be used. It is a
        `Diverged` when weights or loss do not stay finite.

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

    __module__ = "mlpcore"  # where pickles look for it; this module may move

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] | AnyArray | str = (300,),
        *,
        learning_rate_init: float = 1e-2,
        learning_rate_end: float | None = None,
        learning_rate_ratio: float = PAPER_RATIO,
        target: float = USUAL_TARGET,
        activation: Activation = "relu",
        loss: Loss = "cross-entropy",
        init: Init = "glorot",
        decay: Decay = "linear",
        warm_up: int = 0,
        max_iter: int = 100,
        deformation: DeformationParameters | None = None,
        image_shape: tuple[int, int] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        class_weight: Mapping[Any, float] | str | None = None,
        callbacks: Sequence[Callback] | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        backend: str = "cpu",
        threads: int | None = None,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.learning_rate_init = learning_rate_init
        self.learning_rate_end = learning_rate_end
        self.learning_rate_ratio = learning_rate_ratio
        self.target = target
        self.activation = activation
        self.loss = loss
        self.init = init
        self.decay = decay
        self.warm_up = warm_up
        self.max_iter = max_iter
        self.deformation = deformation
        self.image_shape = image_shape
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.class_weight = class_weight
        self.callbacks = callbacks
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.backend = backend
        self.threads = threads

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
                    f"deformation {self.deformation!r}: expected DeformationParameters, for "
                    f"another {', '.join(changes)}"
                )
            self.deformation = self.deformation.set_params(**changes)
        return self

    # ---- training ----------------------------------------------------------------------

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> OnlineMLPClassifier:
        """Trains for `max_iter` epochs, or until it is stopped; returns the estimator.

        It warns when a feature is far outside [-1, 1], and with scikit-learn's ConvergenceWarning
        when the loss still falls at the end.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, about [-1, 1].
        y : array-like of shape (n_samples,)
            Labels of 2 to 256 classes: whole numbers, texts, anything that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            A factor of each sample's learning rate, 0 or more; None stands for 1.
        """
        again = self.warm_start and hasattr(self, "network_")
        check_parameters(self)
        inputs, labels = check_samples(self, X, y, reset=not again)
        classes = self.classes_ if again else check_classes(labels, "y")
        samples = self._samples(inputs, labels, classes, sample_weight)
        seed = self._seed if again else seed_of(self.random_state)
        n_before = len(self._history) if again else 0
        config = self._config(classes, seed, n_before + self.max_iter)
        stopping = None
        if self.early_stopping:
            samples, held_out = samples.hold_out(self.validation_fraction, seed)
            stopping = EarlyStopping(held_out, self.n_iter_no_change, self.tol)
        sizes = (inputs.shape[1], *config.hidden_layers, len(classes))
        fitting = Fitting(config, sizes, classes, vars(self) if again else {}, stopping)

        def fitted_so_far(trainer: Trainer) -> OnlineMLPClassifier:
            twin = copy.copy(self)
            twin.__dict__.update(fitting.attributes(trainer.state.network.copy()))
            return twin

        observers = observers_of(self.callbacks, fitted_so_far)
        backend, images = self._get_backend(fitting.network), self._images(samples)
        with ExitStack() as stack:
            if self.verbose:
                observers.append(stack.enter_context(Console(sys.stdout)))
            network = fitting.train(samples, images, backend, observers)
        self.__dict__.update(fitting.attributes(network))
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> OnlineMLPClassifier:
        """Trains one pass over the samples in the order given; returns the estimator.

        The learning rate is `learning_rate_init`. Many calls do the same as one call with all
        samples, apart from rounding and from `deformation`, for which each call is an epoch.
        Shuffle sorted samples first. `callbacks` are not called. If it raises `Diverged`, the
        estimator is not fitted any more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that may come. The first call needs them; later calls, also after `fit`,
            may repeat them.
        sample_weight : array-like of shape (n_samples,), default=None
            A factor of each sample's learning rate, 0 or more; None stands for 1.
        """
        first = not hasattr(self, "network_")
        check_parameters(self, parts=True)
        known = known_classes(classes, None if first else self.classes_)
        inputs, labels = check_samples(self, X, y, reset=first)
        seed = seed_of(self.random_state) if first else self._seed
        config = self._config(known, seed, epochs=1)
        sizes = (inputs.shape[1], *config.hidden_layers, len(known))
        network = config.new_network(sizes) if first else self.network_
        losses = [] if first else self.loss_curve_
        epoch, backend = FIRST_PARTIAL_EPOCH + len(losses), self._get_backend(network, len(labels))
        samples = self._samples(inputs, labels, known, sample_weight)
        images = self._images(samples)
        try:
            loss = passes.train_in_order(network, images, samples, config, epoch, backend)
        except Diverged:
            self.__dict__.pop("network_", None)
            raise
        losses.append(loss)
        if first:
            self.network_, self.classes_, self.loss_curve_ = network, known, losses
            self.validation_scores_ = self.best_validation_score_ = None
            self._seed, self._history, self._n_samples = seed, [], 0
        self._n_samples += len(labels)
        self.target_ = config.target
        return self

    # ---- parameters and samples --------------------------------------------------------

    def _config(self, classes: AnyArray, seed: int, epochs: int) -> TrainingConfig:
        return TrainingConfig(
            hidden_layers=hidden_layers_of(self.hidden_layer_sizes),
            epochs=epochs,
            learning_rate=self.learning_rate_init,
            learning_rate_end=self.learning_rate_end,
            learning_rate_ratio=self.learning_rate_ratio,
            target=self.target,
            activation=self.activation,
            loss=self.loss,
            init=self.init,
            decay=self.decay,
            warm_up=self.warm_up,
            deformation=deformation_of(self.deformation, classes),
            seed=seed,
            backend=self.backend,
        )

    def _images(self, samples: Samples) -> Float32Array:
        """The inputs as images (n, h, w); of one row if no shape is needed."""
        n, n_features = samples.inputs.shape
        if self.deformation is None and self.image_shape is None:
            return samples.inputs.reshape(n, 1, n_features)
        return samples.inputs.reshape(n, *image_shape_of(self.image_shape, n_features))

    def _samples(
        self, inputs: Float32Array, labels: AnyArray, classes: AnyArray, sample_weight: Any
    ) -> Samples:
        codes = encode(classes, labels)
        return Samples(inputs, codes, weights_of(sample_weight, self.class_weight, classes, codes))
