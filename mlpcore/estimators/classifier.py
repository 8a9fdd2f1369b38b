"""The classifier: scikit-learn's conventions around this package's networks and training loop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.checks import check_rate, check_whole
from mlpcore.data.dataset import Dataset
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.estimators import passes
from mlpcore.estimators.parameters import (
    check_classes,
    deformation_of,
    encode,
    hidden_layers_of,
    image_shape_of,
    keeps_features,
    known_classes,
    seed_of,
    threads_of,
)
from mlpcore.evaluation import probabilities
from mlpcore.network.network import Network
from mlpcore.report.console import Console
from mlpcore.training.config import MAX_EPOCHS, PAPER_RATIO, USUAL_TARGET, TrainingConfig
from mlpcore.training.state import EpochMetrics, TrainingState
from mlpcore.training.trainer import Diverged, Trainer
from mlpcore.typing import AnyArray, Float32Array

#: Weights that keep a thread busy. With fewer, threads wait for each other longer than they
#: compute: a step of an 841-300-100-10 network takes one thread 14 us, a barrier a few us.
WEIGHTS_PER_THREAD = 2**18

#: The epoch of the first `partial_fit`, for random numbers; `fit` never gets this far, so the
#: two do not draw the same ones.
FIRST_PARTIAL_EPOCH = 2**31


class OnlineMLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A multilayer perceptron trained by true on-line back-propagation.

    Weights change after every single sample (batch size 1, no momentum). Each epoch presents the
    samples in a new random order. By default the loss is 1/2 |y - t|^2, with a target t of
    `target` for the class and -`target` for the others, and all layers, the output layer included,
    have the activation y(a) = 1.7159 tanh(0.6666 a) (Cireşan et al. 2010, "Architectures").

    X is converted to float32, but not scaled. Bring its values to about [-1, 1] first, and those
    of images to deform to exactly this range, with a background of -1.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(100,)
        Neurons of each hidden layer, or the name of one of the paper's networks, such as "net1".
    learning_rate_init : float, default=0.001
        Learning rate of the first epoch, and of `partial_fit`. 0.001 suits MNIST; a few hundred
        samples are learnt better with 0.01.
    learning_rate_end : float, default=None
        Learning rate of the last epoch; in between it changes by a constant factor. None stops
        where the paper's schedule, three decades in 2,000 epochs, would be. Only for the `decay`
        "factor".
    learning_rate_ratio : float, default=1.0
        Ratio of each layer's learning rate to that of the next layer. The learning rate is their
        geometric mean.
    target : float, default=1.0
        Target of the output for the class, below 1.7159. MNIST is learnt faster with 1.5, and a
        `learning_rate_ratio` of 2 for two hidden layers (docs/recipe.md). Only for the `loss`
        "squared".
    activation : {"tanh", "relu"}, default="tanh"
        Of the hidden neurons: 1.7159 tanh(0.6666 a), or max(0, a).
    loss : {"squared", "cross-entropy"}, default="squared"
        "cross-entropy" has softmax outputs: `predict_proba` gives them as they are.
    init : {"uniform", "he"}, default="uniform"
        Initial weights: uniform in [-0.05, 0.05], or scaled for the activation "relu".
    decay : {"factor", "linear", "cosine"}, default="factor"
        How the learning rate of `fit` falls: by a constant factor from epoch to epoch, or in
        smaller steps to 0.
    warm_up : int, default=0
        Number of samples over which the learning rate of `fit` rises from 0.
    max_iter : int, default=200
        Epochs that `fit` trains. There is no early stopping.
    deformation : DeformationParameters, default=None
        How the images of X are deformed, anew for every epoch. None leaves them as they are.
    image_shape : (int, int), default=None
        Height and width of the images, whose pixels, row by row, are the features. None stands
        for square images. Only `deformation` needs it.
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
    schedule : {None, "packed", "deferred", "immediate"}, default=None
        When a CPU applies updates; this changes rounding and speed only.
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
    >>> mlp = OnlineMLPClassifier((50,), learning_rate_init=0.01, max_iter=10, random_state=0)
    >>> mlp.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    __module__ = "mlpcore"  # where pickles look for it; this module may move

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] | AnyArray | str = (100,),
        *,
        learning_rate_init: float = 1e-3,
        learning_rate_end: float | None = None,
        learning_rate_ratio: float = PAPER_RATIO,
        target: float = USUAL_TARGET,
        activation: str = "tanh",
        loss: str = "squared",
        init: str = "uniform",
        decay: str = "factor",
        warm_up: int = 0,
        max_iter: int = 200,
        deformation: DeformationParameters | None = None,
        image_shape: tuple[int, int] | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        backend: str = "cpu",
        schedule: str | None = None,
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
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.backend = backend
        self.schedule = schedule
        self.threads = threads

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of earlier versions lack parameters, which had today's defaults then.
        super().__setstate__(vars(OnlineMLPClassifier()) | state)

    # ---- training ----------------------------------------------------------------------

    @keeps_features
    def fit(self, X: ArrayLike, y: ArrayLike) -> OnlineMLPClassifier:
        """Trains for `max_iter` epochs and returns the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, about [-1, 1].
        y : array-like of shape (n_samples,)
            Labels of 2 to 256 classes: whole numbers, texts, anything that can be sorted.
        """
        again = self.warm_start and hasattr(self, "network_")
        self._check_parameters()
        inputs, labels = self._check_samples(X, y, reset=not again)
        classes = self.classes_ if again else check_classes(labels, "y")
        seed = self._seed if again else seed_of(self.random_state)
        history = list(self._history) if again else []
        config = self._config(classes, seed, len(history) + self.max_iter)
        images, codes = self._as_images(inputs), encode(classes, labels)
        data = Dataset("X", images, codes, images[:0], codes[:0], len(classes), source="given")
        sizes = (data.n_inputs, *config.hidden_layers, len(classes))
        network = self.network_.copy() if again else config.new_network(sizes)
        state = TrainingState(network, history=history)
        with ExitStack() as stack:
            observers = [stack.enter_context(Console(sys.stdout))] if self.verbose else []
            Trainer(config, data, self._get_backend(network), observers, state).run()
        losses = [metrics.loss for metrics in state.history[-self.max_iter :]]
        self.loss_curve_: list[float] = [*self.loss_curve_, *losses] if again else losses
        self.network_: Network = network
        self.classes_: AnyArray = classes
        self.target_ = config.target
        self._seed: int = seed
        self._history: list[EpochMetrics] = state.history
        return self

    @keeps_features
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None
    ) -> OnlineMLPClassifier:
        """Trains one pass over the samples in the order given; returns the estimator.

        The learning rate is `learning_rate_init`. Many calls do the same as one call with all
        samples, apart from rounding and from `deformation`, for which each call is an epoch.
        Shuffle sorted samples first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that may come. The first call needs them; later calls, also after `fit`,
            may repeat them.

        Raises
        ------
        Diverged
            When weights or loss are no longer finite. The estimator is then not fitted.
        """
        first = not hasattr(self, "network_")
        self._check_parameters()
        known = known_classes(classes, None if first else self.classes_)
        inputs, labels = self._check_samples(X, y, reset=first)
        seed = seed_of(self.random_state) if first else self._seed
        config = self._config(known, seed, epochs=1)
        sizes = (inputs.shape[1], *config.hidden_layers, len(known))
        network = config.new_network(sizes) if first else self.network_
        losses = [] if first else self.loss_curve_
        epoch, backend = FIRST_PARTIAL_EPOCH + len(losses), self._get_backend(network)
        images, codes = self._as_images(inputs), encode(known, labels)
        loss = passes.train_in_order(network, images, codes, config, epoch, backend)
        if not (np.isfinite(loss) and network.is_finite()):
            if not first:
                del self.network_
            raise Diverged(
                f"training diverged at learning rate {self.learning_rate_init:.4g}: loss or "
                "weights are not finite; expected a lower learning rate"
            )
        losses.append(loss)
        if first:
            self.network_, self.classes_, self.loss_curve_ = network, known, losses
            self._seed, self._history = seed, []
        self.target_ = config.target
        return self

    # ---- prediction --------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> AnyArray:
        """The class with the greatest output for each row of X, (n_samples,)."""
        guesses = self._outputs(X).argmax(axis=1)
        return self.classes_[guesses]

    def decision_function(self, X: ArrayLike) -> Float32Array:
        """The network's outputs, float32 of shape (n_samples, n_classes).

        They are near +-`target_`, or probabilities with the loss "cross-entropy".

        For two classes, float32 of shape (n_samples,): half the difference of the second and
        the first output. A positive number stands for ``classes_[1]``.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return (outputs[:, 1] - outputs[:, 0]) * np.float32(0.5)
        return outputs

    def predict_proba(self, X: ArrayLike) -> Float32Array:
        """Estimates of the classes' probabilities, float32 of shape (n_samples, n_classes).

        `mlpcore.evaluation.probabilities.of_network` says how. The class that `predict` gives has
        the greatest one. Many are exactly 0 or 1, because a network is that sure of what it has
        learnt. Where the values matter, calibrate them with
        `sklearn.calibration.CalibratedClassifierCV`.
        """
        outputs = self._outputs(X)
        found = probabilities.of_network(self.network_, outputs, self.target_)
        return found.astype(np.float32)

    def _outputs(self, X: Any) -> Float32Array:
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        return passes.outputs(self.network_, X, self._get_backend(self.network_))

    # ---- fitted attributes -------------------------------------------------------------

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
    def n_iter_(self) -> int:
        """Epochs and calls of `partial_fit` so far."""
        return len(self.loss_curve_)

    # ---- parameters and samples --------------------------------------------------------

    def _check_parameters(self) -> None:
        """Checks parameters that have another name elsewhere, so that errors have this one."""
        check_whole("max_iter", self.max_iter, 1, MAX_EPOCHS)
        check_rate("learning_rate_init", self.learning_rate_init)
        if self.learning_rate_end is not None:
            check_rate("learning_rate_end", self.learning_rate_end)
        check_rate("learning_rate_ratio", self.learning_rate_ratio)

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
            schedule=self.schedule,
        )

    def _get_backend(self, network: Network) -> Backend:
        threads = threads_of(self.threads, network.n_parameters // WEIGHTS_PER_THREAD)
        return backends.get(self.backend, threads, self.schedule)

    def _check_samples(self, X: Any, y: Any, reset: bool) -> tuple[Float32Array, AnyArray]:
        X, y = validate_data(self, X, y, dtype=np.float32, order="C", reset=reset)
        check_classification_targets(y)
        if self.deformation is not None and np.abs(X).max() > 1 + 1e-6:  # float32's rounding
            raise InputError(
                f"X holds {X.flat[np.abs(X).argmax()]:.4g}: expected images in [-1, 1], "
                "with a background of -1, for a deformation"
            )
        return X, y

    def _as_images(self, inputs: Float32Array) -> Float32Array:
        """Inputs (n, n_features) as images (n, h, w); of one row if no shape is needed."""
        n, n_features = inputs.shape
        if self.deformation is None and self.image_shape is None:
            return inputs.reshape(n, 1, n_features)
        return inputs.reshape(n, *image_shape_of(self.image_shape, n_features))
