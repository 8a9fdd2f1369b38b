"""The learners of streams, with River's methods: one sample at a time."""

from __future__ import annotations

import copy
import math
import secrets
import sys
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlpcore.checks import check_rate, check_real, check_whole
from mlpcore.errors import InputError, brief
from mlpcore.estimators.stream_network import StreamNetwork
from mlpcore.network.architecture import MAX_WIDTH, hidden_layers_of
from mlpcore.network.network import Network
from mlpcore.store.export import EstimatorNetwork
from mlpcore.training.trainer import Diverged

try:
    from river.base import MiniBatchClassifier, MiniBatchRegressor
except ImportError:
    MiniBatchClassifier = MiniBatchRegressor = object


def _check_weight(name: str, weight: Any) -> None:
    check_real(name, weight)
    if not 0 <= weight < 3e38:
        raise InputError(f"{name} {weight}: expected 0 or more, and less than 3e38")


def _rows(X: Any) -> list[dict[Any, Any]]:
    """The rows of a pandas.DataFrame, with their names."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        raise InputError(f"X is {brief(X)}: expected a pandas.DataFrame")
    if not X.columns.is_unique:
        name = X.columns[X.columns.duplicated()][0]
        raise InputError(f"X has two columns {brief(name)}: expected different names")
    return X.to_dict("records")


@dataclass(repr=False, eq=False)
class _StreamMLP:
    """The base class of the learners of streams. `StreamMLPClassifier` documents it."""

    _mutable_attributes = frozenset({"learning_rate", "max_features"})  # River asks
    class_weight = None  # without a type, so that no parameter precedes the others

    hidden_layer_sizes: int | Sequence[int] | str = (50,)
    learning_rate: float | None = None
    max_features: int = 2**16
    seed: int | None = 0

    def __post_init__(self) -> None:
        self._rate()
        check_whole("max_features", self.max_features, 1, MAX_WIDTH)
        if self.seed is not None:
            check_whole("seed", self.seed, 0, 2**64 - 1)
        hidden = hidden_layers_of(self.hidden_layer_sizes)
        seed = secrets.randbits(64) if self.seed is None else self.seed
        self._network = StreamNetwork(hidden, seed, self._labels())

    def _labels(self) -> Collection[Hashable] | None:
        """The labels known in advance; None for numbers."""
        return None

    # ---- one sample ------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            A dictionary of named numbers, or (n,) numbers. A name with None, NaN or
            pandas.NA is missing.
        y
            The label, any hashable object but None; of a regressor the number.
        w
            A factor of the learning rate, 0 or more. One that would make the step unstable is
            lowered to what is stable. With 0, only the sample's names and label become known.

        Raises
        ------
        InputError
            When the sample cannot be used; nothing is learnt then.
        Diverged
            When the network has become useless, because the learning rate is too high.
        """
        weight, limits = self._weight(y, w), (self.max_features, self.class_weight == "balanced")
        loss = self._network.learn(x, y, self._rate(), weight, *limits)
        if not math.isfinite(loss):
            raise self._diverged()

    def _diverged(self) -> Diverged:
        """The error of a network whose losses or answers are not finite any more."""
        return Diverged(
            f"training diverged at learning rate {self.learning_rate}: loss or answers are not "
            "finite; expected a new learner with a lower one, or None"
        )

    def _weight(self, y: Any, w: float) -> float:
        """The weight of a sample."""
        if type(w) is not float or w != 1.0:
            _check_weight("w", w)
        return w

    def _rate(self) -> float:
        """The learning rate, which is 0 if the rule decides."""
        rate = self.learning_rate
        if rate is None:
            return 0.0
        if type(rate) is not float or not 0 < rate < 1:  # the usual ones take no time to check
            check_rate("learning_rate", rate)
        return rate

    def predict_one(self, x: Any) -> Any:
        """The answer to a sample; errors are those of `learn_one`."""
        raise NotImplementedError

    # ---- many ------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a pandas.DataFrame in their order, exactly as by `learn_one`.

        Raises
        ------
        InputError
            When a row cannot be used, or names or labels would be too many; nothing is learnt then.
        """
        rows, answers = _rows(X), list(y)
        if len(rows) != len(answers):
            raise InputError(f"y of {len(answers)}: expected one for each of {len(rows)} rows of X")
        for each in answers:
            self._weight(each, 1.0)
        self._network.check(zip(rows, answers), self.max_features)
        for x, each in zip(rows, answers):
            self.learn_one(x, each)

    def predict_many(self, X: Any) -> Any:
        """The answers of `predict_one` for the rows of a pandas.DataFrame: a pandas.Series."""
        answers = [self.predict_one(x) for x in _rows(X)]
        return sys.modules["pandas"].Series(answers, X.index)

    # ---- what is known ---------------------------------------------------------------

    @property
    def feature_names_(self) -> list[Any]:
        """The features known, in the order of the inputs."""
        return list(self._network.columns)

    @property
    def network_(self) -> Network | None:
        """The network that answers now."""
        found = self._network.found
        return None if found is None else found[0]

    def _found(self) -> Any:
        """What is known, for an export."""
        if (found := self._network.found) is None:
            raise InputError("an estimator that has learned no sample: expected some before export")
        return found

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # a network belongs to one stepper


@dataclass(repr=False, eq=False)
class StreamMLPClassifier(_StreamMLP, MiniBatchClassifier):  # type: ignore[misc]
    """A multilayer perceptron that learns from a stream, one sample at a time.

    Each `learn_one` is one step of back-propagation. Hidden neurons are rectifiers, outputs are a
    softmax with cross-entropy. A linear softmax learns next to the network, and the answer mixes
    the logits of both. Learning rates do not fall to 0, so that both follow a stream that drifts.

    A sample is a dictionary of named numbers, as in River, or another row with names, such as a
    pandas.Series or a named tuple; or an array or a list of numbers. A name that has not been seen
    before gets an input, and a new label an output; the other weights stay as they are. Features
    are scaled by their numbers so far; docs/streams.md says what a missing name stands for.

    Where River is installed, this is a `river.base.MiniBatchClassifier`.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(50,)
        Neurons of each hidden layer.
    learning_rate : float or None, default=None
        The factor of the gradient in each step of the network. None is 0.1, or less for long
        samples: 0.1 min(1, sqrt(3 / (1 + |x|^2))). It falls to a tenth while the loss falls no
        more, and rises after a drift.
    max_features : int, default=65536
        A sample whose names would exceed this number is refused.
    seed : int or None, default=0
        Seed of the initial weights, 0 to 2**64 - 1. None draws one.
    classes : sequence of hashable or None, default=None
        Labels known in advance. Others can still appear: 256 in all.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of samples, by label; 1 for labels that it lacks. "balanced" is
        n / (k m) for each sample, the last of n of k classes so far, and of m of its own.

    Attributes
    ----------
    classes_ : list
        The labels known, in the order of the outputs.
    feature_names_ : list
        The features known, in the order of the inputs.
    network_ : Network or None
        The network that answers, with its weights as they are now; None before the first sample.
        The linear model's outputs, and their negatives, are neurons of its hidden layers, two for
        each label.

    Examples
    --------
    >>> mlp = StreamMLPClassifier()
    >>> for step in range(200):
    ...     mlp.learn_one({"x": step % 2, "y": step % 3}, "even" if step % 2 == 0 else "odd")
    >>> mlp.predict_one({"x": 1, "y": 2})
    'odd'
    """

    _multiclass = True  # River asks
    _mutable_attributes = _StreamMLP._mutable_attributes | {"class_weight"}

    classes: Collection[Hashable] | None = None
    class_weight: Mapping[Any, float] | str | None = None  # type: ignore[assignment]

    def _labels(self) -> Collection[Hashable]:
        labels, weights = self.classes, self.class_weight
        # The order of a set of texts differs from process to process.
        if isinstance(labels, str | set | frozenset) or not isinstance(labels, Collection | None):
            raise InputError(f"classes {labels!r}: expected a list of labels or None")
        self._weight(None, 1.0)  # refuses what is neither
        for label in weights if isinstance(weights, Mapping) else ():
            self._weight(label, 1.0)
        return () if labels is None else list(labels)

    def _weight(self, y: Any, w: float) -> float:
        """The weight of a sample. All is checked each time, because River mutates attributes."""
        w, weights = super()._weight(y, w), self.class_weight
        if weights is None or not isinstance(y, Hashable):
            return w
        if isinstance(weights, str) and weights == "balanced":
            return w
        if not isinstance(weights, Mapping):
            raise InputError(
                f"class_weight {weights!r}: expected a dictionary of weights, 'balanced' or None"
            )
        factor = weights.get(y, 1.0)
        _check_weight(f"class_weight of {y!r}", factor)
        return float(w) * float(factor)

    def predict_one(self, x: Any) -> Any:
        """The label that fits a sample best; None if no label is known yet."""
        outputs = self._network.predict(x)
        if outputs is None:
            return next(iter(self._network.labels), None)
        best = outputs.argmax()
        if not math.isfinite(outputs[best]):
            raise self._diverged()
        return self._network.labels[best]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each known label, for a sample."""
        outputs, labels = self._network.predict(x), self._network.labels
        if outputs is None:
            return dict.fromkeys(labels, 1 / max(len(labels), 1))
        shares = outputs.astype(np.float64)
        total = shares.sum()
        if not math.isfinite(total):
            raise self._diverged()
        return dict(zip(labels, (shares / total).tolist()))

    def predict_proba_many(self, X: Any) -> Any:
        """The answers of `predict_proba_one` for the rows of a pandas.DataFrame, as another one."""
        rows = [self.predict_proba_one(x) for x in _rows(X)]
        return sys.modules["pandas"].DataFrame(rows, X.index, self.classes_)

    @property
    def classes_(self) -> list[Any]:
        """The labels known, in the order of the outputs."""
        return list(self._network.labels)

    def _for_export(self) -> EstimatorNetwork:
        network, scaling, _, names, labels = self._found()
        classes = np.empty(len(labels), object)
        classes[:] = labels  # which may be tuples
        return EstimatorNetwork(network, classes, feature_names=names, standardisation=scaling)


@dataclass(repr=False, eq=False)
class StreamMLPRegressor(_StreamMLP, MiniBatchRegressor):  # type: ignore[misc]
    """A multilayer perceptron that learns numbers from a stream, one sample at a time.

    Like `StreamMLPClassifier`, with one linear output and Huber's loss. The targets are scaled as
    features are: with their running mean and deviation, and cut to 5. A single one far outside
    those before hardly changes the scale.

    Where River is installed, this is a `river.base.MiniBatchRegressor`.

    Parameters
    ----------
    hidden_layer_sizes, learning_rate, max_features, seed
        As those of `StreamMLPClassifier`.

    Attributes
    ----------
    feature_names_, network_
        As those of `StreamMLPClassifier`. The network's output is the scaled target.

    Examples
    --------
    >>> mlp = StreamMLPRegressor()
    >>> for step in range(1000):
    ...     mlp.learn_one({"x": step % 7, "y": step % 3}, (step % 7) * (step % 3))
    >>> round(mlp.predict_one({"x": 6, "y": 2}))
    12
    """

    def predict_one(self, x: Any) -> float:
        """The number for a sample; 0 before the first has been learned."""
        found = self._network.predict(x)
        if found is None:
            return 0.0
        if not math.isfinite(found):
            raise self._diverged()
        return float(found)

    def _for_export(self) -> EstimatorNetwork:
        network, scaling, (mean, deviation), names, _ = self._found()
        scale = np.array([mean]), np.array([deviation])
        return EstimatorNetwork(network, feature_names=names, standardisation=scaling, scale=scale)


for _learner in (StreamMLPClassifier, StreamMLPRegressor):
    _learner.__module__ = "mlpcore"  # where pickles look for it; this module may move
    del _learner.__dataclass_fields__  # Dask and others would compare nothing else
del _StreamMLP.__dataclass_fields__
