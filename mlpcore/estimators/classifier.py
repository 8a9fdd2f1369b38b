"""The classifier in scikit-learn's manner: the same networks, training loop and backends.

It converts: parameters to a `TrainingConfig`, X and y to a `Dataset`, labels to classes counted
from 0, and outputs back.
"""

from __future__ import annotations

import dataclasses
import reprlib
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mlpcore import backends, deformation
from mlpcore.checks import check_rate, check_whole
from mlpcore.data.dataset import Dataset
from mlpcore.deformation.deform import IDENTITY, DeformationParameters
from mlpcore.errors import InputError
from mlpcore.estimators.parameters import (
    are_similar,
    check_classes,
    encode,
    features_kept,
    image_shape_of,
    seed_of,
    threads_of,
)
from mlpcore.evaluation import evaluation, probabilities
from mlpcore.network import Network
from mlpcore.network.activation import check_target
from mlpcore.network.architecture import MAX_WIDTH, parse_hidden_layers
from mlpcore.report.console import Console
from mlpcore.training.config import MAX_EPOCHS, PAPER_RATIO, USUAL_TARGET, TrainingConfig
from mlpcore.training.state import EpochMetrics, TrainingState
from mlpcore.training.trainer import Diverged, Trainer
from mlpcore.typing import AnyArray, Float32Array

#: Weights that occupy a thread: with fewer, threads wait for each other longer than they
#: compute. A step of a network of 841-300-100-10 takes one thread 14 us, a barrier some us.
WEIGHTS_PER_THREAD = 2**18

#: `partial_fit` counts its passes from here where random numbers count epochs, so that no
#: epoch of `fit` draws the same ones.
FIRST_PARTIAL_EPOCH = 2**31


class OnlineMLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A multilayer perceptron trained by true on-line back-propagation.

    Weights change after every single sample (batch size 1, no momentum), presented in a new
    random order every epoch; loss 1/2 |y - t|^2 with targets t of `target` for the class and its
    negative for the others; y(a) = 1.7159 tanh(0.6666 a) in all layers, the output layer included
    (Cireşan et al. 2010, "Architectures"). All arithmetic is float32; X is converted.

    X is not scaled: bring its values to about [-1, 1] first, images to exactly that with -1 as
    background.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(100,)
        Neurons of each hidden layer, or a text such as "net1" (1000, 500), the paper's.
    learning_rate_init : float, default=0.001
        Learning rate of the first epoch, and of `partial_fit`. Some hundred samples learn
        better at 0.01; MNIST does not.
    learning_rate_end : float, default=None
        Of the last epoch; in between it changes by a constant factor. None goes as far as the
        paper's schedule, three decades in 2,000 epochs.
    learning_rate_ratio : float, default=1.0
        Of each layer's learning rate to that of the layer above it; their geometric mean is the
        learning rate.
    target : float, default=1.0
        Of the output for the class, below 1.7159. MNIST is learnt faster at 1.5, with a
        `learning_rate_ratio` of 2 for two hidden layers (docs/recipe.md).
    max_iter : int, default=200
        Epochs that `fit` trains; there is no early stopping.
    deformation : DeformationParameters, default=None
        Deforms the images of X anew for every epoch, elastically and affinely; None does not.
    image_shape : (int, int), default=None
        Height and width of the images whose pixels are the features, row by row, for
        `deformation`. None means that they are square.
    random_state : int, RandomState instance or None, default=None
        Of the initial weights, the orders and the deformations. The same whole number, from 0
        to 2**64 - 1, gives the same weights bit for bit on the same backend, whatever the
        number of threads.
    warm_start : bool, default=False
        Whether another call of `fit` goes on, with the same seed and the next epochs' random
        numbers, as if `max_iter` epochs more had been asked for at first. With a
        `learning_rate_end` the rate rises again at the seam: the earlier epochs went all the way.
    verbose : bool, default=False
        Whether `fit` prints a line for each epoch. Its validation error is that of all of X,
        undeformed, after the epoch.
    backend : str, default="cpu"
        What computes: "cpu", "cuda", "auto" or any other of `mlpcore.backends.get`.
    schedule : {None, "packed", "deferred", "immediate"}, default=None
        When updates are applied on a CPU; they differ in rounding and speed only.
    threads : int, default=None
        Threads on a CPU. None takes one for each 262,144 weights, but no more than there are
        cores, and in worker processes, as of a search with `n_jobs`, than the worker's share.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
        Features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has some.
    network_ : Network
        The weights; two classes have two outputs as well.
    coefs_ : list of ndarray of shape (n_in, n_out)
        Weights of each layer, float32: views, so writing to them changes the network.
    intercepts_ : list of ndarray of shape (n_out,)
        Biases of each layer, likewise.
    loss_curve_ : list of float
        Mean of 1/2 |y - t|^2 over each epoch's or `partial_fit`'s samples, each taken just
        before its update.
    loss_ : float
        The last of them.
    target_ : float
        `target` of the last training.
    n_iter_ : int
        Epochs and calls of `partial_fit` so far.

    Raises
    ------
    InputError
        A ValueError, from `fit` and the other methods, when a parameter or X or y cannot be
        used; `Diverged` when weights or loss do not stay finite.

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

    classes_: AnyArray
    network_: Network
    target_: float
    loss_curve_: list[float]
    _seed: int
    _history: list[EpochMetrics]

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] | AnyArray | str = (100,),
        *,
        learning_rate_init: float = 1e-3,
        learning_rate_end: float | None = None,
        learning_rate_ratio: float = PAPER_RATIO,
        target: float = USUAL_TARGET,
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
        self.max_iter = max_iter
        self.deformation = deformation
        self.image_shape = image_shape
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.backend = backend
        self.schedule = schedule
        self.threads = threads

    # ---- training ----------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike) -> OnlineMLPClassifier:
        """Trains for `max_iter` epochs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite; about [-1, 1] is expected.
        y : array-like of shape (n_samples,)
            Labels of 2 to 256 classes: whole numbers, texts, anything that can be sorted.

        Returns
        -------
        The estimator itself.
        """
        with features_kept(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> OnlineMLPClassifier:
        again = self.warm_start and hasattr(self, "network_")
        self._check_parameters()
        X, y = self._check_samples(X, y, reset=not again)
        classes = self.classes_ if again else check_classes(y, "y")
        codes = encode(classes, y)
        history = list(self._history) if again else []
        seed = self._seed if again else seed_of(self.random_state)
        config = TrainingConfig(
            hidden_layers=self._hidden_layers(),
            epochs=len(history) + self.max_iter,
            learning_rate=self.learning_rate_init,
            learning_rate_end=self.learning_rate_end,
            learning_rate_ratio=self.learning_rate_ratio,
            target=self.target,
            deformation=self._deformation_of(classes),
            seed=seed,
            backend=self.backend,
            schedule=self.schedule,
        )
        images = X.reshape(len(X), *self._image_shape(X))
        data = Dataset(
            "X", images, codes, images[:0], codes[:0], n_classes=len(classes), source="given"
        )
        network = self.network_.copy() if again else self._new_network(X, classes, seed)
        state = TrainingState(network, history=history)
        with ExitStack() as stack:
            observers = [stack.enter_context(Console(sys.stdout))] if self.verbose else []
            Trainer(config, data, self._get_backend(network), observers, state).run()
        history = state.history
        losses = [metrics.loss for metrics in history[-self.max_iter :]]
        self.network_, self.classes_, self._seed, self._history = network, classes, seed, history
        self.loss_curve_ = [*self.loss_curve_, *losses] if again else losses
        self.target_ = config.target
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None
    ) -> OnlineMLPClassifier:
        """Trains one pass over the samples in the order given, at `learning_rate_init`.

        One call for many samples does the same as many calls, but for rounding and
        `deformation`, of which each call is an epoch. Shuffle samples that are sorted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that may come; wanted by the first call, and left out or the same in
            those that follow it or `fit`.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        Diverged
            When weights or loss are no longer finite; the estimator is then not fitted.
        """
        with features_kept(self):
            return self._partial_fit(X, y, classes)

    def _partial_fit(self, X: Any, y: Any, classes: Any) -> OnlineMLPClassifier:
        first = not hasattr(self, "network_")
        self._check_parameters()
        rates = self._first_rates()
        classes = self._classes_for_partial_fit(classes, first)
        X, y = self._check_samples(X, y, reset=first)
        codes = encode(classes, y)
        shape, parameters = self._image_shape(X), self._deformation_of(classes)
        seed = seed_of(self.random_state) if first else self._seed
        network = self._new_network(X, classes, seed) if first else self.network_
        losses = [] if first else self.loss_curve_
        backend = self._get_backend(network)
        images, labels = backend.put(X.reshape(len(X), *shape)), backend.put(codes)
        if not parameters.is_identity:
            epoch = FIRST_PARTIAL_EPOCH + len(losses)
            images = deformation.deform(images, labels, parameters, seed, epoch, backend)
        loaded = backend.load(network)
        order = backend.put(np.arange(len(X), dtype=np.int32))
        inputs = images.reshape(X.shape)
        result = backend.train(loaded, inputs, labels, order, rates, target=self.target)
        backend.store(loaded, network)
        if not (np.isfinite(result.loss) and network.is_finite()):
            if not first:
                del self.network_
            raise Diverged(
                f"training diverged at learning rate {self.learning_rate_init:.4g}: loss or "
                "weights are not finite; expected a lower learning rate"
            )
        if first:
            self.network_, self.classes_, self._seed, self._history = network, classes, seed, []
            self.loss_curve_ = losses
        self.target_ = float(self.target)
        losses.append(result.loss / len(X))
        return self

    # ---- prediction --------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> AnyArray:
        """The class with the greatest output, (n_samples,), of each row of X."""
        guesses = self._outputs(X).argmax(axis=1)
        return self.classes_[guesses]

    def decision_function(self, X: ArrayLike) -> Float32Array:
        """The network's outputs, float32 of shape (n_samples, n_classes), near +-`target_`.

        Of two classes, (n_samples,): half the second output less the first, so that a positive
        number stands for ``classes_[1]``.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2:
            return (outputs[:, 1] - outputs[:, 0]) * np.float32(0.5)
        return outputs

    def predict_proba(self, X: ArrayLike) -> Float32Array:
        """Estimates of the classes' probabilities, float32 of shape (n_samples, n_classes).

        Of outputs y trained towards +1 and -1, (y + 1) / 2 estimates them (towards +t and -t,
        (y / t + 1) / 2); these are the nearest numbers to it that are not negative and have a sum
        of 1; `mlpcore.evaluation.probabilities` says why. The greatest is that of the class
        that `predict` gives. Many are exactly 0 or 1, as sure as a network is that has learnt its
        samples: where their size matters, calibrate them with
        `sklearn.calibration.CalibratedClassifierCV`.
        """
        return probabilities.of_outputs(self._outputs(X), self.target_).astype(np.float32)

    def _outputs(self, X: Any) -> Float32Array:
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        backend = self._get_backend(self.network_)
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = evaluation.outputs(self.network_, X, backend).astype(np.float32)
        if self._overflows(X) or not np.isfinite(outputs).all():
            raise InputError(
                f"X holds {X.flat[np.abs(X).argmax()]:.4g}, with which sums overflow float32: "
                "expected about -1 to 1"
            )
        return outputs

    def _overflows(self, X: Float32Array) -> bool:
        """Whether sums of inputs may exceed float32: the outputs are finite then, but wrong."""
        greatest = float(np.abs(X).max(initial=0.0))
        if greatest < 1e9:  # no need to look at the weights, which training keeps far below 1e20
            return False
        sums = np.abs(self.network_.weights[0]).sum(axis=1, dtype=np.float64)
        return greatest * float(sums.max()) > float(np.finfo(np.float32).max)

    # ---- the network -------------------------------------------------------------------

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

    def _new_network(self, X: Float32Array, classes: AnyArray, seed: int) -> Network:
        return Network((X.shape[1], *self._hidden_layers(), len(classes)), seed)

    def _get_backend(self, network: Network) -> backends.Backend:
        threads = threads_of(self.threads, network.n_parameters // WEIGHTS_PER_THREAD)
        return backends.get(self.backend, threads, self.schedule)

    # ---- parameters and samples --------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuses, by the name it has here, what the parts below would refuse by another."""
        check_whole("max_iter", self.max_iter, 1, MAX_EPOCHS)
        check_rate("learning_rate_init", self.learning_rate_init)
        if self.learning_rate_end is not None:
            check_rate("learning_rate_end", self.learning_rate_end)
        check_rate("learning_rate_ratio", self.learning_rate_ratio)
        check_target(self.target)
        if not (self.deformation is None or isinstance(self.deformation, DeformationParameters)):
            raise InputError(
                f"deformation {self.deformation!r}: expected DeformationParameters or None"
            )
        self._hidden_layers()

    def _first_rates(self) -> tuple[float, ...]:
        """The layers' learning rates in the first epoch, and in `partial_fit`."""
        config = TrainingConfig(
            hidden_layers=self._hidden_layers(),
            learning_rate=self.learning_rate_init,
            learning_rate_ratio=self.learning_rate_ratio,
        )
        return config.learning_rates_at(0)

    def _hidden_layers(self) -> tuple[int, ...]:
        sizes: Any = self.hidden_layer_sizes
        if isinstance(sizes, str):
            return parse_hidden_layers(sizes)
        sizes = tuple(sizes) if isinstance(sizes, (Sequence, np.ndarray)) else (sizes,)
        for size in sizes:
            check_whole("hidden_layer_sizes", size, 1, MAX_WIDTH)
        return sizes

    def _check_samples(self, X: Any, y: Any, reset: bool) -> tuple[Float32Array, AnyArray]:
        X, y = validate_data(self, X, y, dtype=np.float32, order="C", reset=reset)
        check_classification_targets(y)
        if self.deformation is not None and not np.abs(X).max() <= 1 + 1e-6:  # float32's rounding
            raise InputError(
                f"X holds {X.flat[np.abs(X).argmax()]:.4g}: expected images in [-1, 1], "
                "the background being -1, for a deformation"
            )
        return X, y

    def _image_shape(self, X: Float32Array) -> tuple[int, int]:
        if self.deformation is None and self.image_shape is None:
            return 1, X.shape[1]
        return image_shape_of(self.image_shape, X.shape[1])

    def _deformation_of(self, classes: AnyArray) -> DeformationParameters:
        """The deformation, its similar labels counted from 0 as the network's classes are."""
        if self.deformation is None:
            return IDENTITY
        similar = np.flatnonzero(are_similar(classes, self.deformation.similar_labels))
        return dataclasses.replace(self.deformation, similar_labels=tuple(similar.tolist()))

    def _classes_for_partial_fit(self, classes: ArrayLike | None, first: bool) -> AnyArray:
        if first:
            if classes is None:
                raise InputError(
                    "classes None: expected all labels in the first call of partial_fit"
                )
            return check_classes(classes, "classes")
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"classes {reprlib.repr(np.unique(classes).tolist())}: expected none or "
                f"those known, {reprlib.repr(self.classes_.tolist())}"
            )
        return self.classes_
