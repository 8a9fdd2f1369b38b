"""Outputs compared with labels: errors, their interval, confusions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlpcore.backends.arguments import check_array, check_finite, check_range
from mlpcore.backends.base import Backend
from mlpcore.errors import InputError
from mlpcore.evaluation import probabilities
from mlpcore.network.network import Network
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: 95 % of a normal distribution is within so many standard deviations of its mean.
Z = 1.959963984540054

#: Images that a backend gets at once; a multiple of its own batches.
BATCH = 8192


@dataclass(frozen=True, eq=False)
class Misclassified:
    """The m samples whose first guess is wrong, in the order of the data.

    Attributes
    ----------
    indices, labels : ndarray of int, shape (m,)
        Their places in the data, and their true classes.
    guesses : ndarray of int, shape (m, 2)
        The classes with the greatest and the second greatest output.
    outputs : ndarray of float, shape (m, 2)
        These two outputs.
    """

    indices: AnyArray
    labels: AnyArray
    guesses: AnyArray
    outputs: AnyArray

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The comparison of guesses with labels.

    A network's first guess is the class with the greatest output, its second guess the class
    with the second greatest. Among equal outputs the lower class comes first.

    Attributes
    ----------
    n : int
        Number of samples, at least one.
    confusion : ndarray of int, shape (n_classes, n_classes)
        Number of samples with each label (row) and each first guess (column).
    misclassified : Misclassified
        The samples off the diagonal.
    """

    n: int
    confusion: AnyArray
    misclassified: Misclassified

    @classmethod
    def of(cls, outputs: AnyArray, labels: AnyArray) -> Evaluation:
        """Compares outputs (n, n_classes), real numbers, with labels (n,), whole numbers.

        Raises
        ------
        InputError
            When there is no sample or only one class, shapes do not match, an output is not finite,
            or a label is not a class.
        """
        outputs, labels = np.asarray(outputs), np.asarray(labels)
        fits = outputs.ndim == 2 and len(outputs) and outputs.shape[1] > 1
        if not fits or outputs.dtype.kind != "f":
            raise InputError(
                f"outputs: {outputs.dtype} of shape {outputs.shape}, "
                "expected real numbers of shape (1 or more samples, 2 or more classes)"
            )
        n, n_classes = outputs.shape
        if labels.shape != (n,) or labels.dtype.kind not in "iu":
            raise InputError(
                f"labels: {labels.dtype} of shape {labels.shape}, "
                f"expected whole numbers of shape ({n},)"
            )
        check_range("labels", labels, n_classes)
        check_finite("outputs", outputs)
        labels = labels.astype(np.intp)
        guesses = outputs.argmax(axis=1)
        confusion = np.bincount(labels * n_classes + guesses, minlength=n_classes**2)
        wrong = np.flatnonzero(guesses != labels)
        # A stable sort of the negative outputs leaves the lower class first among equal ones.
        best = np.argsort(-outputs[wrong], axis=1, kind="stable")[:, :2]
        best_outputs = np.take_along_axis(outputs[wrong], best, axis=1)
        misclassified = Misclassified(wrong, labels[wrong], best, best_outputs)
        return cls(n, confusion.reshape(n_classes, n_classes), misclassified)

    def __repr__(self) -> str:
        return f"Evaluation({self.errors:,} of {self.n:,} wrong, {self.error_rate:.2f} %)"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.confusion)

    @property
    def errors(self) -> int:
        """Number of samples whose first guess is wrong."""
        return len(self.misclassified)

    @property
    def error_rate(self) -> float:
        """Errors as a percentage of all samples."""
        return 100 * self.errors / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the error rate's 95 % confidence interval, in percent."""
        low, high = wilson_interval(self.errors, self.n)
        return 100 * low, 100 * high

    @property
    def second_right(self) -> int:
        """Errors whose second guess is right: 30 of 35 for the best network (paper, "Results")."""
        return int(np.count_nonzero(self.misclassified.guesses[:, 1] == self.misclassified.labels))

    def to_json(self) -> dict[str, object]:
        """Everything as plain values; rates are in percent."""
        wrong = self.misclassified
        columns = (wrong.indices, wrong.labels, wrong.guesses, wrong.outputs)
        names = ("sample", "label", "guesses", "outputs")
        return {
            "n": self.n,
            "errors": self.errors,
            "error_rate": self.error_rate,
            "interval": self.interval,
            "second_right": self.second_right,
            "confusion": self.confusion.tolist(),
            "misclassified": [dict(zip(names, row)) for row in zip(*(c.tolist() for c in columns))],
        }


def wilson_interval(k: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a probability, for k successes in n independent trials.

    Unlike k / n plus or minus a standard error, it is sensible for few or no successes (E. B.
    Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA 22).
    """
    p, scale = k / n, 2 * (n + Z**2)
    centre = (2 * n * p + Z**2) / scale
    half = Z / scale * math.sqrt(4 * n * p * (1 - p) + Z**2)
    return centre - half if k else 0.0, centre + half if k < n else 1.0


def outputs(network: Network, images: Float32Array, backend: Backend) -> Float64Array:
    """Outputs (n, n_classes) of a network for images (n, h, w) or inputs (n, n_in), float32.

    The images are in the network's range of inputs, `mlpcore.data.pixels.InputRange`.

    Raises
    ------
    InputError
        When the images are not float32, or have more or fewer pixels than the network inputs.
    """
    inputs = np.asarray(images)
    if inputs.ndim == 3:
        inputs = inputs.reshape(len(inputs), inputs.shape[1] * inputs.shape[2])
    inputs = check_array("images", inputs, (None, network.layer_sizes[0]))
    return backend.predict(backend.load(network), backend.put(inputs)).astype(np.float64)


def mean_outputs(networks: Sequence[Network], outputs: Sequence[AnyArray]) -> Float64Array:
    """The mean (n, n_classes) of several networks' outputs, each (n, n_classes).

    It is the mean of their probabilities if their losses differ.
    """
    if len({network.loss for network in networks}) > 1:
        outputs = [probabilities.of_network(*pair) for pair in zip(networks, outputs)]
    return np.asarray(np.mean(outputs, axis=0, dtype=np.float64))


def evaluate(
    network: Network, images: Float32Array, labels: AnyArray, backend: Backend
) -> Evaluation:
    """Evaluates a network on images (n, h, w) or inputs (n, n_in), float32, and labels (n,).

    Raises
    ------
    InputError
        As `outputs` and `Evaluation.of`.

    Examples
    --------
    A network that says 0 to everything:

    >>> from mlpcore import backends
    >>> network = Network((4, 3))
    >>> network.biases[0][:] = [1, 0, -1]
    >>> images, labels = np.zeros((10, 2, 2), np.float32), np.arange(10) % 3
    >>> result = evaluate(network, images, labels, backends.get("scalar"))
    >>> result.errors, result.error_rate, result.second_right
    (6, 60.0, 3)
    >>> result.confusion.tolist()
    [[4, 0, 0], [3, 0, 0], [3, 0, 0]]
    """
    return Evaluation.of(outputs(network, images, backend), labels)
