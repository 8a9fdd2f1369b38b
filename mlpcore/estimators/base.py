"""The base class of the estimators: scikit-learn's conventions, networks and their training."""

from __future__ import annotations

import copy
import math
import operator
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.checks import GREATEST_RATE, LEAST_RATE
from mlpcore.deformation.parameters import IDENTITY, DeformationParameters
from mlpcore.estimators.fitting import (
    FEW,
    FitRecord,
    LossLines,
    StepperCache,
    bounded,
    copy_of,
    decay_of,
    few_samples,
    outputs_of,
    split_callbacks,
    train_by_steps,
    warn_of_training,
)
from mlpcore.estimators.validation import (
    Samples,
    canonical,
    check_samples,
    float_rows,
    image_shape_of,
    seed_of,
    threads_of,
    validated,
)
from mlpcore.network.activation import OF_TARGETS, Activation, Init
from mlpcore.network.architecture import hidden_layers_of
from mlpcore.network.network import Network
from mlpcore.report.console import ProgressBar
from mlpcore.store.export import EstimatorNetwork
from mlpcore.training.config import MAX_EPOCHS, PAPER_RATIO, Decay, TrainingConfig
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

#: A function of the estimator as it is after an epoch, and of the epoch's metrics.
Callback = Observer | Callable[[Any, EpochMetrics], object]

Estimator = TypeVar("Estimator", bound="type[OnlineMLP]")


class OnlineMLP(BaseEstimator):  # type: ignore[misc]
    """The parameters, training and fitted attributes of an estimator with a network.

    A subclass says what its targets are. `parameterised` makes its constructor.
    """

    _cache = None  # of `partial_fit`; its stepper has the weights as they are now
    deformation: ClassVar[DeformationParameters | None] = None
    image_shape: ClassVar[tuple[int, int] | None] = None

    #: Of those that `TrainingConfig` does not check by these names.
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learning_rate_init": [Interval(Real, LEAST_RATE, GREATEST_RATE, closed="both")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, sys.float_info.max, closed="both")],
        "max_iter": [Interval(Integral, 1, MAX_EPOCHS, closed="both")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {math.inf})],
        "tol": [Interval(Real, None, None, closed="neither")],
        "warm_start": ["boolean"],
        "verbose": ["boolean"],
    }

    #: The longest step that is stable, and the least weight that is lowered for that.
    _bounds: ClassVar[tuple[float, float]]

    #: The values of all parameters.
    _parameters: ClassVar[Any]

    hidden_layer_sizes: int | Sequence[int] | AnyArray | str = field(default=(300,), kw_only=False)
    learning_rate_init: float = 1e-2
    alpha: float | str = "auto"
    max_iter: int = 100
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: float = 10
    tol: float = 1e-4
    callbacks: Sequence[Callback] | None = None
    random_state: int | np.random.RandomState | None = None
    warm_start: bool = False
    verbose: bool = False
    backend: str = "cpu"
    threads: int | None = None
    activation: Activation = "relu"
    init: Init = "glorot"
    decay: Decay = "linear"
    warm_up: int = 0
    learning_rate_end: float | None = None
    learning_rate_ratio: float = PAPER_RATIO

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- targets -----------------------------------------------------------------------

    @property
    @abstractmethod
    def n_outputs_(self) -> int:
        """Outputs of the network."""

    @abstractmethod
    def _learn_targets(self, targets: AnyArray, weights: Any, again: bool) -> None:
        """Keeps for a `fit` what the targets are, or checks that it fits what is known of them."""

    @abstractmethod
    def _samples(self, inputs: Float32Array, targets: AnyArray, sample_weight: Any) -> Samples:
        """Samples with their targets as a network learns them."""

    def _stream_samples(
        self, inputs: Float32Array, targets: AnyArray, sample_weight: Any
    ) -> Samples:
        """`_samples` of a `partial_fit`."""
        return self._samples(inputs, targets, sample_weight)

    @abstractmethod
    def _held_out_score(self, outputs: Float32Array, held_out: Samples) -> float:
        """The score that `early_stopping` compares."""

    @abstractmethod
    def _answers(self, outputs: AnyArray) -> AnyArray:
        """The answers (n,) or (n, n_outputs) of outputs (n, n_outputs)."""

    def predict(self, X: ArrayLike) -> AnyArray:
        """The answer to each row of X, (n_samples,) or (n_samples, n_outputs).

        A classifier's is the class with the greatest output, a regressor's float64.
        """
        return self._answers(self._outputs(X))

    @abstractmethod
    def _meaning(self) -> dict[str, Any]:
        """Fields of an `EstimatorNetwork`: what the outputs mean."""

    def _deformation(self) -> DeformationParameters:
        """The deformation of a training run."""
        return IDENTITY

    def _codes(self) -> dict[Any, int]:
        """The place of each class, if there are some."""
        classes = getattr(self, "classes_", np.empty(0))
        return {label: code for code, label in enumerate(classes.tolist())}

    def _settings(self) -> dict[str, Any]:
        """The loss of a `TrainingConfig`, if it is no parameter: one of numbers as targets."""
        return {}

    # ---- training ----------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Trains until the loss falls no more, or for `max_iter` epochs; returns the estimator.

        It warns of features far outside [-1, 1] and of images in [0, 1] to deform; and with
        scikit-learn's ConvergenceWarning when the learning rate was too high, or the loss still
        falls at the end.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Finite numbers, about [-1, 1]. One thread learns sparse rows, and makes none dense.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Of a classifier labels of 2 to 256 classes: whole numbers, texts, anything that can be
            sorted; or a matrix, which may be sparse, with 1 where a sample has the label of the
            column, and else 0. Of a regressor finite numbers, one or several a sample.
        sample_weight : array-like of shape (n_samples,), default=None
            A factor of each sample's learning rate, 0 or more; None stands for 1. Weights, those
            of classes included, are divided by their mean, so that only their ratios matter. They
            also count in the mean and the deviation of a regressor's targets.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """`fit`, as deep in the stack as `_partial_fit`, whose warnings name the caller's line."""
        again = self.warm_start and hasattr(self, "_network")
        self._validate_params()
        # A copy, so that this one stays as it is if a check or the training fails.
        mlp = copy_of(self) if again else self._new()
        inputs, targets = check_samples(mlp, X, y, reset=not again)
        mlp._learn_targets(targets, sample_weight, again)
        if again:
            mlp.best_validation_score_ = None
        n_before = len(mlp._history)
        config = mlp._config(n_before + self.max_iter)
        samples = mlp._samples(inputs, targets, sample_weight).with_mean_weight_1()
        if not again:
            mlp._network = mlp._new_network(config)
        held_out = None
        if self.early_stopping:
            samples, held_out = samples.split(self.validation_fraction, config.seed)
        functions, others = split_callbacks(self.callbacks)
        record = FitRecord(mlp, held_out, functions)
        mlp._n_samples, mlp.target_ = len(samples.targets), config.target
        # What continues after the epochs of `_history`.
        state = TrainingState(mlp._network, history=mlp._history)
        backend = mlp._get_backend(mlp._network)
        source = mlp._source(bounded(mlp, samples), config, backend)
        lines: Any = nullcontext(LossLines() if self.verbose else Observer())
        if self.verbose and not mlp._settings():  # which counts errors
            lines = ProgressBar(sys.stdout)
        with lines as console:
            observers = record, *others, console
            decay = decay_of(mlp, len(samples.targets), backend)
            complete = Trainer(config, source, backend, observers, state, decay).run()
        warn_of_training(mlp, samples, n_before, complete)
        mlp._network = record.best or mlp._network
        self.__dict__.update(mlp.__dict__)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **known: Any) -> Any:
        """See `partial_fit` of the subclasses; `known` are attributes of a first call."""
        first = not hasattr(self, "_network")
        cache = self._cache
        if cache and not all(map(operator.is_, cache.parameters, self._parameters(self))):
            cache = None
        if cache is None:
            self._validate_params()
        mlp, samples = self, few_samples(self, cache, X, y, sample_weight)
        if samples is None:
            inputs, targets = check_samples(self, X, y, reset=first)
            if first:
                mlp = self._new()
                mlp.__dict__.update(known)
            samples = mlp._stream_samples(inputs, targets, sample_weight)
        samples = bounded(mlp, samples)
        try:
            loss = mlp._learn(samples, cache)
        except Diverged:
            for name in (*known, "_network", "_cache"):
                self.__dict__.pop(name, None)
            raise
        mlp.loss_curve_.append(loss)
        if len(mlp.loss_curve_) >= 2 * LONGEST_CURVE:
            del mlp.loss_curve_[:LONGEST_CURVE]
        mlp._n_calls += 1
        mlp._n_samples += len(samples.targets)
        mlp.t_ += len(samples.targets)
        if first:
            self.__dict__.update(mlp.__dict__)
        return self

    def _learn(self, samples: Samples, cache: StepperCache | None) -> float:
        """Learns samples in their order, by steps if these are few; returns their mean loss."""
        few = len(samples.targets) <= FEW or issparse(samples.inputs)
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
            self._parameters(self),
            config,
            config.layer_rates(config.learning_rate),
            decay,
            self._codes(),
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
        inputs, targets, weights = samples.inputs, samples.targets, samples.weights
        if issparse(inputs):
            return SparseSource(inputs, targets, self.n_outputs_, config.seed, weights)
        shape = 1, self.n_features_in_  # one row, if no other shape is needed
        if self.deformation is not None or self.image_shape is not None:
            shape = image_shape_of(self.image_shape, self.n_features_in_)
        images, drawing = inputs.reshape(-1, *shape), (config.seed, config.deformation)
        return ArraySource(
            images, targets, self.n_outputs_, backend, *drawing, weights, single_pass
        )

    def _config(self, epochs: int) -> TrainingConfig:
        passed = {name: value for name, value in vars(self).items() if name in PASSED_ON}
        return TrainingConfig(
            hidden_layers=hidden_layers_of(self.hidden_layer_sizes),
            epochs=epochs,
            learning_rate=self.learning_rate_init,
            deformation=self._deformation(),
            seed=self._seed,
            **passed | self._settings(),
        )

    def _new(self) -> Any:
        """A copy before its first sample, yet without a network."""
        mlp = copy.copy(self)
        mlp.__dict__.pop("_network", None)
        mlp._seed = seed_of(self.random_state)
        mlp.loss_curve_, mlp._history, mlp._n_samples, mlp._n_calls = [], [], 0, 0
        mlp.t_, mlp._cache = 0, None
        mlp.validation_scores_ = mlp.best_validation_score_ = None
        return mlp

    def _new_network(self, config: TrainingConfig) -> Network:
        return config.new_network((self.n_features_in_, *config.hidden_layers, self.n_outputs_))

    # ---- predictions -------------------------------------------------------------------

    def _outputs(self, X: Any) -> Float32Array:
        check_is_fitted(self, "_network")
        rows = float_rows(X, self)
        if rows is None:
            rows = canonical(validated(self, X))
        cache = self._cache  # which another thread may drop
        if cache is not None and (rows.shape[0] <= FEW or issparse(rows)):
            outputs = cache.stepper.predict(rows)
            if np.isfinite(outputs).all():
                return outputs
        network = self._current_network()
        return outputs_of(network, rows, self._get_backend(network))

    def _get_backend(self, network: Network) -> Backend:
        """The backend that computes with a network."""
        threads = threads_of(self.threads, network.n_parameters // WEIGHTS_PER_THREAD)
        backend = backends.get(self.backend, threads)
        backend.check_option(f"loss {network.loss}", network.loss in OF_TARGETS or None)
        return backend

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

    def _for_export(self) -> EstimatorNetwork:
        """The network and the names that `mlpcore.export` writes."""
        check_is_fitted(self, "_network")
        names = tuple(getattr(self, "feature_names_in_", ()))
        return EstimatorNetwork(self._current_network(), feature_names=names, **self._meaning())

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
    def n_iter_(self) -> int:
        """Epochs and calls of `partial_fit` so far."""
        return len(self._history) + self._n_calls


def parameterised(estimator: Estimator) -> Estimator:
    """A subclass with a constructor for its parameters and those of `OnlineMLP`."""
    shared = OnlineMLP.__annotations__.items()
    fields = {name: kind for name, kind in shared if not kind.startswith("ClassVar")}
    estimator.__annotations__ = fields | estimator.__annotations__
    dataclass(kw_only=True, repr=False, eq=False)(estimator)
    del estimator.__dataclass_fields__  # Dask and others would compare nothing else
    estimator.__module__ = "mlpcore"  # where pickles look for it; this module may move
    estimator._parameters = staticmethod(operator.attrgetter(*estimator._get_param_names()))
    return estimator
