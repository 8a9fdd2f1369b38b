"""What outputs are worth: error rate and its interval, confusion matrix, second guesses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mlpcore.backends.base import Backend, check_array
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.typing import AnyArray, Float32Array, Float64Array

CONFIDENCE = 0.95
"""Probability with which `Evaluation.interval` holds the error rate."""

#: Images at a time where a backend computes; a multiple of the batches inside it.
BATCH = 8192


@dataclass(frozen=True, eq=False)
class Misclassified:
    """The m samples whose first guess is wrong, in their order in the data.

    Attributes
    ----------
    indices : ndarray of int, shape (m,)
        Which samples they are.
    labels : ndarray of int, shape (m,)
        What they are.
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


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How a network's guesses compare with the labels.

    The first guess is the class with the greatest output, the second guess that with the
    greatest of the others; of equal outputs the first counts.

    Attributes
    ----------
    n : int
        Samples, at least one.
    confusion : ndarray of int, shape (n_classes, n_classes)
        How many samples of each label (row) had each class as their first guess (column).
    misclassified : Misclassified
        The samples that are off the diagonal.
    """

    n: int
    confusion: AnyArray
    misclassified: Misclassified

    @classmethod
    def of(cls, outputs: AnyArray, labels: AnyArray) -> Evaluation:
        """Evaluates outputs (n, n_classes) of real numbers for labels (n,) of whole numbers.

        Raises
        ------
        InputError
            When there is no sample or only one class, shapes do not fit each other, an output
            is not finite, or a label is not a class.
        """
        outputs, labels = np.asarray(outputs), np.asarray(labels)
        if outputs.ndim != 2 or outputs.dtype.kind != "f" or outputs.shape[1] < 2:
            raise InputError(
                f"outputs: {outputs.dtype} of shape {outputs.shape}, "
                "expected real numbers of shape (n, 2 or more classes)"
            )
        n, n_classes = outputs.shape
        if labels.shape != (n,) or labels.dtype.kind not in "iu":
            raise InputError(
                f"labels: {labels.dtype} of shape {labels.shape}, "
                f"expected whole numbers of shape ({n},)"
            )
        if n == 0:
            raise InputError("outputs: none, expected at least one sample")
        outside = labels[(labels < 0) | (labels >= n_classes)]
        if len(outside):
            raise InputError(f"label {outside[0]}: expected 0 to {n_classes - 1}")
        if not np.isfinite(outputs).all():
            raise InputError("outputs: not all are finite, expected only numbers")
        labels = labels.astype(np.intp)
        guesses = outputs.argmax(axis=1)
        confusion = np.bincount(labels * n_classes + guesses, minlength=n_classes**2)
        wrong = np.flatnonzero(guesses != labels)
        # Stable and of the negative outputs: of equal ones the first, as argmax has it.
        best = np.argsort(-outputs[wrong], axis=1, kind="stable")[:, :2]
        return cls(
            n=n,
            confusion=confusion.reshape(n_classes, n_classes),
            misclassified=Misclassified(
                indices=wrong,
                labels=labels[wrong],
                guesses=best,
                outputs=np.take_along_axis(outputs[wrong], best, axis=1),
            ),
        )

    @property
    def n_classes(self) -> int:
        """Classes that the network tells apart."""
        return len(self.confusion)

    @property
    def errors(self) -> int:
        """Samples whose first guess is wrong."""
        return len(self.misclassified)

    @property
    def error_rate(self) -> float:
        """Errors in percent of all samples."""
        return 100 * self.errors / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Where the error rate of all such data lies with 95 % confidence, in percent."""
        low, high = wilson_interval(self.errors, self.n)
        return 100 * low, 100 * high

    def to_json(self) -> dict[str, object]:
        """Everything as plain values; rates are in percent."""
        wrong = self.misclassified
        columns = (wrong.indices, wrong.labels, wrong.guesses, wrong.outputs)
        return {
            "n": self.n,
            "errors": self.errors,
            "error_rate": self.error_rate,
            "interval": self.interval,
            "second_right": self.second_right,
            "confusion": self.confusion.tolist(),
            "misclassified": [
                {"sample": index, "label": label, "guesses": guesses, "outputs": outputs}
                for index, label, guesses, outputs in zip(*(c.tolist() for c in columns))
            ],
        }

    @property
    def second_right(self) -> int:
        """Errors whose second guess is right: 30 of 35 for the best network (paper, "Results")."""
        return int(np.count_nonzero(self.misclassified.guesses[:, 1] == self.misclassified.labels))


def wilson_interval(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Score interval of a probability of which k of n independent trials were seen to succeed.

    The probabilities p for which k / n is within z standard deviations sqrt(p (1 - p) / n) of p.
    Unlike k / n plus or minus an error it is sensible for few or no successes. E. B. Wilson
    (1927), Probable inference, the law of succession, and statistical inference, JASA 22,
    209-212.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p, shrink = k / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # Exactly 0 and 1 at the ends, where rounding would miss them.
    return (0.0 if k == 0 else centre - half), (1.0 if k == n else centre + half)


def outputs(network: Network, images: Float32Array, backend: Backend) -> Float64Array:
    """Outputs (n, n_classes) of a network for images (n, n_in) or (n, h, w), float32.

    Raises
    ------
    InputError
        When the images do not fit the network.
    """
    inputs = as_inputs(images, network.layer_sizes[0])
    result = np.empty((len(inputs), network.layer_sizes[-1]))
    loaded = backend.load(network)
    for begin in range(0, len(inputs), BATCH):
        part = slice(begin, begin + BATCH)
        result[part] = backend.predict(loaded, backend.put(inputs[part]))
    return result


def as_inputs(images: Float32Array, n_inputs: int) -> Float32Array:
    """Images (n, h, w) as a network's inputs (n, h w); inputs (n, n_in) stay as they are.

    Raises
    ------
    InputError
        When they are not float32 or do not have as many pixels as the network has inputs.
    """
    images = np.asarray(images)
    if images.ndim == 3:
        height, width = images.shape[1:]
        if height * width != n_inputs:
            raise InputError(
                f"images of {height} x {width} pixels: expected {n_inputs:,} pixels, "
                "as many as the network has inputs"
            )
        images = images.reshape(len(images), n_inputs)
    return check_array("images", images, (None, n_inputs))


def evaluate(
    network: Network, images: Float32Array, labels: AnyArray, backend: Backend
) -> Evaluation:
    """Evaluates a network on images (n, h, w) or (n, n_in), float32, and labels (n,).

    Raises
    ------
    InputError
        When the images do not fit the network, or as `Evaluation.of`.

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
