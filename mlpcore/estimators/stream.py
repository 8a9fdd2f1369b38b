"""The classifier for streams, with River's methods: one sample at a time."""

from __future__ import annotations

import copy
import functools
import math
import reprlib
import sys
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from mlpcore import backends
from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.base import Stepper
from mlpcore.checks import check_rate, check_real, check_whole
from mlpcore.errors import InputError
from mlpcore.estimators.feature_row import FeatureRow
from mlpcore.estimators.stability import warn_of_step
from mlpcore.network.architecture import MAX_WIDTH, hidden_layers_of
from mlpcore.network.network import Network
from mlpcore.store.onnx_estimator import EstimatorNetwork
from mlpcore.training.trainer import Diverged
from mlpcore.typing import Float32Array


class StreamMLPClassifier:
    """A multilayer perceptron that learns from a stream, one sample at a time.

    Each `learn_one` is one step of back-propagation. Hidden neurons are rectifiers, outputs are a
    softmax with cross-entropy. The learning rate stays the same for ever, so that the network
    follows a stream that drifts.

    A sample is a dictionary of named numbers, as in River, or an array or a list of numbers. A
    name that has not been seen before gets an input, and a new label an output; the other weights
    stay as they are. Names that a sample lacks are 0.

    When River is imported before a classifier is made, this is a `river.base.Classifier`.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or str, default=(50,)
        Neurons of each hidden layer.
    learning_rate : float, default=0.03
        The factor of the gradient in each step.
    standardise : bool, default=True
        Scales each feature to mean 0 and variance 1 of its numbers so far, and cuts it to 5
        standard deviations. A missing name then stands for the mean.
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
        The network with its weights as they are now, None before the first sample. It can have
        more inputs than there are features, for names to come.

    Examples
    --------
    >>> mlp = StreamMLPClassifier()
    >>> for step in range(200):
    ...     mlp.learn_one({"x": step % 2, "y": step % 3}, "even" if step % 2 == 0 else "odd")
    >>> mlp.predict_one({"x": 1, "y": 2})
    'odd'
    """

    __module__ = "mlpcore"  # where pickles look for it; this module may move

    _multiclass = True  # River asks

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] | str = (50,),
        learning_rate: float = 0.03,
        standardise: bool = True,
        classes: Collection[Hashable] | None = None,
        max_features: int = 2**16,
        seed: int = 0,
    ):
        self._hidden = hidden_layers_of(hidden_layer_sizes)
        if isinstance(classes, str) or not isinstance(classes, Collection | None):
            raise InputError(f"classes {classes!r}: expected a list of labels or None")
        check_rate("learning_rate", learning_rate)
        check_whole("max_features", max_features, 1, MAX_WIDTH)
        check_whole("seed", seed, 0, 2**64 - 1)
        self.hidden_layer_sizes = hidden_layer_sizes
        self.learning_rate = learning_rate
        self.standardise = standardise
        self.classes = classes
        self.max_features = max_features
        self.seed = seed
        self._codes: dict[Hashable, int] = {}
        for label in () if classes is None else classes:
            self._codes[label] = self._code_of(label)
        self._features = FeatureRow(standardise)
        self._label = np.zeros(1, np.uint8)
        self._stepper: Stepper | None = None
        self._join_river()

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
            A factor of the learning rate, 0 or more. A warning tells of one that makes the step
            unstable.

        Raises
        ------
        InputError
            When the sample cannot be used; nothing is learnt then.
        Diverged
            When the network has become useless, because the learning rate is too high.
        """
        features = self._features
        code = self._code_of(y)
        weight = None if w == 1.0 else _weight(w)
        features.read(x)
        stepper = self._stepper
        if features.new or code == len(self._codes) or stepper is None:
            stepper = self._grow(y)
        features.write(learn=True)
        self._label[0] = code
        rate = self.learning_rate
        if weight is not None and w > 1:
            step = rate * (1 + float(np.vdot(features.inputs, features.inputs)))
            warn_of_step(w, step, "w gives the sample", f"learning_rate {rate:.4g}", stacklevel=3)
        loss = stepper.train(features.inputs, self._label, rate, sample_weight=weight).loss
        if not math.isfinite(loss):
            raise Diverged(
                f"training diverged at learning rate {self.learning_rate:g}: the loss is not "
                "finite; expected a lower one"
                + ("" if self.standardise else ", or standardise=True")
            )

    def predict_one(self, x: Any) -> Any:
        """The label that fits a sample best; None if no label is known yet."""
        if self._stepper is None:
            return next(iter(self._codes), None)
        return self._labels[self._outputs(self._stepper, x).argmax()]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each known label, for a sample."""
        if self._stepper is None:
            return dict.fromkeys(self._codes, 1 / max(len(self._codes), 1))
        outputs = self._outputs(self._stepper, x).astype(np.float64)
        outputs /= outputs.sum()
        return dict(zip(self._labels, outputs.tolist()))

    def _outputs(self, stepper: Stepper, x: Any) -> Float32Array:
        """The outputs of the network, (n_classes,). Names without an input are left out."""
        features = self._features
        features.read(x)
        features.write()
        return stepper.predict(features.inputs)[0]

    # ---- what is known ---------------------------------------------------------------

    def _code_of(self, y: Hashable) -> int:
        """The output of a label; of a new one the next that is free."""
        try:
            code = self._codes.get(y)
        except TypeError:
            raise InputError(f"y {reprlib.repr(y)}: expected a hashable label") from None
        if code is not None:
            return code
        if y is None or y != y:
            raise InputError(f"y {y}: expected a label")
        if len(self._codes) == N_LABELS:
            raise InputError(f"y {reprlib.repr(y)}: expected at most {N_LABELS} different labels")
        return len(self._codes)

    def _grow(self, y: Hashable) -> Stepper:
        """Make room in the network for the features and the label of the sample just read."""
        features, known = self._features, len(self._features.columns)
        if known + len(features.new) > self.max_features:
            raise InputError(
                f"x has {len(features.new)} new features beside the {known} known: expected "
                f"{self.max_features} in all at most, see max_features"
            )
        room, n_classes = features.inputs.shape, len(self._codes)
        features.add()
        self._codes.setdefault(y, n_classes)
        self._labels = list(self._codes)
        if self._stepper and (features.inputs.shape, len(self._codes)) == (room, n_classes):
            return self._stepper
        old, fan = self.network_, max(len(features.names), 1)
        sizes = (features.inputs.shape[1], *self._hidden, len(self._codes))
        network = Network(sizes, self.seed, "relu", "cross-entropy", "glorot")
        # As for a layer of so many inputs as this sample has, whatever the room for others.
        network.weights[0] *= np.float32(((sizes[0] + sizes[1]) / (fan + sizes[1])) ** 0.5)
        if old is not None:
            for new, kept in zip(network.weights, old.weights):
                new[: kept.shape[0], : kept.shape[1]] = kept
            for new, kept in zip(network.biases, old.biases):
                new[: len(kept)] = kept
        self._stepper = _stepper(network)
        return self._stepper

    @property
    def classes_(self) -> list[Any]:
        """The labels known, in the order of the outputs."""
        return list(self._codes)

    @property
    def feature_names_(self) -> list[Any]:
        """The features known, in the order of the inputs."""
        return list(self._features.columns)

    @property
    def network_(self) -> Network | None:
        """The network with its weights as they are now."""
        return None if self._stepper is None else self._stepper.network

    def _for_export(self) -> EstimatorNetwork:
        """What `mlpcore.export` writes: without the room for names to come."""
        if self.network_ is None:
            raise InputError("a classifier that has learnt no sample: expected some before export")
        first, *further = self.network_.weights
        names = self.feature_names_
        sizes = (len(names), *self.network_.layer_sizes[1:])
        network = Network(sizes, 0, self.network_.activation, self.network_.loss)
        for to, weights in zip(network.weights, [first[:, : len(names)], *further]):
            to[...] = weights
        for to, biases in zip(network.biases, self.network_.biases):
            to[...] = biases
        classes = np.empty(len(self._labels), object)
        classes[:] = self._labels  # which may be tuples
        return EstimatorNetwork(
            network,
            classes,
            feature_names=tuple(map(str, names)),
            standardisation=self._features.standardisation,
        )

    # ---- copies, and River -----------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        plain = getattr(self, "_plain", type(self))
        return object.__new__, (plain,), self.__dict__ | {"_stepper": self.network_}

    def __setstate__(self, state: dict[str, Any]) -> None:
        network = state["_stepper"]
        self.__dict__ |= state | {"_stepper": None if network is None else _stepper(network)}
        self._join_river()

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # a network belongs to one stepper

    def _join_river(self) -> None:
        """Become one of River's classifiers, if River is there to ask for them."""
        if type(self) is StreamMLPClassifier and "river.base" in sys.modules:
            self.__class__ = _of_river()


def _weight(w: float) -> Float32Array:
    """The weight of a sample, (1,)."""
    check_real("w", w)
    if not 0 <= w < 3e38:
        raise InputError(f"w {w}: expected 0 or more, and less than 3e38")
    return np.array([w], np.float32)


def _stepper(network: Network) -> Stepper:
    """What trains the network on one core: more would wait for each other longer than compute."""
    return backends.get("cpu", threads=1).stepper(network)


@functools.cache
def _of_river() -> Any:
    """The class that is also one of River's, which mlpcore does not import by itself."""
    bases = (StreamMLPClassifier, sys.modules["river.base"].Classifier)
    name, doc = StreamMLPClassifier.__name__, StreamMLPClassifier.__doc__
    body = {"__module__": "mlpcore", "__doc__": doc, "_plain": StreamMLPClassifier}
    return type(name, bases, body)
