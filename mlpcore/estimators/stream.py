"""The classifier for streams, with River's methods: one sample at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlpcore.checks import check_rate, check_real, check_whole
from mlpcore.errors import InputError
from mlpcore.estimators.stream_network import StreamNetwork
from mlpcore.network.architecture import MAX_WIDTH, hidden_layers_of
from mlpcore.network.network import Network
from mlpcore.store.export import EstimatorNetwork
from mlpcore.training.trainer import Diverged

try:
    from river.base import Classifier
except ImportError:
    Classifier = object


@dataclass(repr=False, eq=False)
class StreamMLPClassifier(Classifier):  # type: ignore[misc]
    """A multilayer perceptron that learns from a stream, one sample at a time.

    Each `learn_one` is one step of back-propagation. Hidden neurons are rectifiers, outputs are a
    softmax with cross-entropy. A linear softmax learns beside the network, and the answer mixes the
    logits of both. Learning rates do not fall to 0, so that both follow a stream that drifts.

    A sample is a dictionary of named numbers, as in River, or another row with names, such as a
    pandas.Series or a named tuple; or an array or a list of numbers. A name that has not been seen
    before gets an input, and a new label an output; the other weights stay as they are. Features
    are scaled by their numbers so far; docs/streams.md says what a missing name stands for.

    Where River is installed, this is a `river.base.Classifier`.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(50,)
        Neurons of each hidden layer.
    learning_rate : float or None, default=None
        The factor of the gradient in each step of the network. None is 0.1, or less for long
        samples: 0.1 min(1, sqrt(3 / (1 + |x|^2))).
    classes : sequence of hashable or None, default=None
        Labels known in advance. Others can still appear: 256 in all.
    max_features : int, default=65536
        A sample whose names would exceed this number is refused.
    seed : int, default=0
        Seed of the initial weights, 0 to 2**64 - 1.

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

    hidden_layer_sizes: int | Sequence[int] | str = (50,)
    learning_rate: float | None = None
    classes: Collection[Hashable] | None = None
    max_features: int = 2**16
    seed: int = 0

    def __post_init__(self) -> None:
        hidden, labels = hidden_layers_of(self.hidden_layer_sizes), self.classes
        if isinstance(labels, str) or not isinstance(labels, Collection | None):
            raise InputError(f"classes {labels!r}: expected a list of labels or None")
        self._rate()
        check_whole("max_features", self.max_features, 1, MAX_WIDTH)
        check_whole("seed", self.seed, 0, 2**64 - 1)
        labels = () if labels is None else labels
        self._network = StreamNetwork(hidden, self.seed, labels)

    # ---- one sample ------------------------------------------------------------------

    def learn_one(self, x: Any, y: Hashable, w: float = 1.0) -> None:
        """Learn a sample.

        Parameters
        ----------
        x
            A dictionary of named numbers, or (n,) numbers.
        y
            The label: any hashable object but None.
        w
            A factor of the learning rate, 0 or more. One that would make the step unstable is
            lowered to what is stable; a warning tells of that before anything is learnt.

        Raises
        ------
        InputError
            When the sample cannot be used; nothing is learnt then.
        Diverged
            When the network has become useless, because the learning rate is too high.
        """
        rate = self._rate()
        if w != 1.0:
            check_real("w", w)
            if not 0 <= w < 3e38:
                raise InputError(f"w {w}: expected 0 or more, and less than 3e38")
        loss = self._network.learn(x, y, rate, w, self.max_features)
        if not math.isfinite(loss):
            raise Diverged(
                f"training diverged at learning rate {self.learning_rate}: the loss is not "
                "finite; expected a lower one, or None"
            )

    def _rate(self) -> float:
        """The learning rate, which is 0 if the rule decides."""
        rate = self.learning_rate
        if rate is None:
            return 0.0
        if type(rate) is not float or not 0 < rate < 1:  # the usual ones take no time to check
            check_rate("learning_rate", rate)
        return rate

    def predict_one(self, x: Any) -> Any:
        """The label that fits a sample best; None if no label is known yet."""
        outputs = self._network.predict(x)
        if outputs is None:
            return next(iter(self._network.labels), None)
        return self._network.labels[outputs.argmax()]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each known label, for a sample."""
        outputs, labels = self._network.predict(x), self._network.labels
        if outputs is None:
            return dict.fromkeys(labels, 1 / max(len(labels), 1))
        shares = outputs.astype(np.float64)
        shares /= shares.sum()
        return dict(zip(labels, shares.tolist()))

    # ---- what is known ---------------------------------------------------------------

    @property
    def classes_(self) -> list[Any]:
        """The labels known, in the order of the outputs."""
        return list(self._network.codes)

    @property
    def feature_names_(self) -> list[Any]:
        """The features known, in the order of the inputs."""
        return list(self._network.columns)

    @property
    def network_(self) -> Network | None:
        """The network that answers now."""
        found = self._network.network
        return None if found is None else found[0]

    def _for_export(self) -> EstimatorNetwork:
        of = copy.copy(self._network)  # which other threads do not change
        if (found := of.network) is None:
            raise InputError("a classifier that has learnt no sample: expected some before export")
        classes = np.empty(len(of.labels), object)
        classes[:] = of.labels  # which may be tuples
        return EstimatorNetwork(
            found[0],
            classes,
            feature_names=tuple(map(str, of.columns)),
            standardisation=found[1],
        )

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # a network belongs to one stepper


StreamMLPClassifier.__module__ = "mlpcore"  # where pickles look for it; this module may move
del StreamMLPClassifier.__dataclass_fields__  # Dask and others would compare nothing else
