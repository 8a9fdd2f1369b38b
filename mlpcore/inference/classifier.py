"""Trained networks that classify: of a run, of a file, of several, or the package's own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mlpcore import backends
from mlpcore.backends.arguments import check_array
from mlpcore.backends.base import Backend
from mlpcore.data.dataset import EMBEDDED, MNIST, Images
from mlpcore.data.pixels import PixelSpec
from mlpcore.errors import InputError, PictureWarning, brief, shown
from mlpcore.evaluation import evaluation, probabilities
from mlpcore.evaluation.copies import Copies
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.inference import rejector
from mlpcore.inference.inputs import are_pictures, as_path, find_digits, images_of_pixels
from mlpcore.inference.slant import turned_back
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.committee import with_members
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import AnyArray, BoolArray, Float32Array, Float64Array, StrPath

if TYPE_CHECKING:
    from mlpcore.data.digit import Digit

#: The name of the network in the package, and its file.
PRETRAINED = "pretrained"
PRETRAINED_FILE = Path(__file__).resolve().parents[1] / "pretrained" / "net1.safetensors"


def load(
    source: StrPath | Sequence[StrPath],
    *,
    backend: str = "cpu",
    threads: int | None = None,
    copies: int | None = None,
    strength: float = 0.5,
    seed: int = 0,
) -> TrainedClassifier:
    """Load trained networks to classify with.

    Parameters
    ----------
    source : str, os.PathLike or sequence of these
        The folder of a run, which stands for its best network; that of a committee, which stands
        for its members; a file of weights; or "pretrained", the network net1 in the package,
        trained on MNIST. Several of these are a committee, whose outputs are the mean. A folder
        named "pretrained" is "./pretrained".
    backend, threads
        What computes: see `mlpcore.backends.get`.
    copies, strength, seed
        The number of deformed copies of each sample over which outputs are averaged, how strongly
        these are deformed, and the seed of their maps: see `mlpcore.evaluation.Copies`. By default
        the sample itself is classified.

    Returns
    -------
    TrainedClassifier

    Raises
    ------
    InputError
        When a file cannot be read or is damaged, the networks differ in their images or classes,
        there is no such backend, or a number is out of range.

    Examples
    --------
    >>> import mlpcore
    >>> from mlpcore import Network
    >>> from mlpcore.store.weights import write_network
    >>> from mlpcore.data.pixels import MNIST_PIXELS
    >>> from mlpcore.store.documents import to_metadata
    >>> metadata = to_metadata(data="MNIST", pixels=MNIST_PIXELS)
    >>> write_network("net.safetensors", Network((841, 10), seed=1), metadata)
    >>> net = mlpcore.load("net.safetensors", backend="scalar", threads=1)
    >>> net
    TrainedClassifier(net.safetensors: 841-10; pictures of 28 x 28; scalar)
    >>> pictures = np.zeros((3, 28, 28), np.uint8)
    >>> net.predict(pictures).shape, net.predict_proba(pictures).shape
    ((3,), (3, 10))
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(sources, Sequence):
        raise InputError(f"{brief(source)}: expected {SOURCES}")
    computing = backends.get(backend, threads)
    averaged = None if copies is None else Copies(copies, strength, seed)
    paths = [PRETRAINED_FILE if each == PRETRAINED else as_path(each, SOURCES) for each in sources]
    networks = [TrainedNetwork.read(path) for path in with_members(paths)]
    return TrainedClassifier(networks, computing, averaged)


SOURCES = "the folder of a run or of a committee, a file of weights, or 'pretrained'"


class Answer(NamedTuple):
    """The answer of networks to a picture.

    Attributes
    ----------
    digit : mlpcore.data.digit.Digit
        What they are shown.
    outputs : ndarray of float64, shape (n_classes,)
    warning : str
        What is wrong with the picture, mostly nothing ("").
    """

    digit: Digit
    outputs: Float64Array
    warning: str


class TrainedClassifier:
    """Trained networks that classify pictures by the mean of their outputs.

    `load` makes it. `predict` and `predict_proba` take pictures, one or many:

    - **Files and PIL images**: a path, a folder, whose pictures are sorted by name
      (`mlpcore.data.image_files.picture_files`), an open binary file, an image of PIL, or a list of
      these. Each shows a digit, dark on a light background or light on dark. It is found and
      converted to MNIST's format (`mlpcore.data.digit`), so the network must take images of that
      format. A network of digits answers three times, as `outputs_of_digits` says. A picture that
      seems to show several digits, or none, gives a `PictureWarning`.
    - **Arrays**, or what `numpy.asarray` takes: pixels (n, h, w), (h, w) or (n, h w) with the sizes
      and the values of the arrays or files that the network was trained on. They are scaled as
      those were, and never searched for a digit. A network trained on MNIST takes whole numbers of
      28 x 28, 0 for the background to 255 for the ink, as MNIST's files hold them; a light border
      gives a `PictureWarning`.

    `predict_images` and `outputs` take the images (n, H, W) of a `Dataset`, float32 in [-1, 1];
    `to_images` makes them from pictures. Each network converts them to its own width and range, and
    to the scale of its own data if the first network's data had different values.

    Results have a row for each sample, also for a single one. An `InputError` is raised, and
    nothing is computed, when a picture cannot be read or shows no digit, or an array is not as
    described.

    Parameters
    ----------
    networks : sequence of TrainedNetwork
        At least one, all for the same images and classes.
    backend : Backend
    copies : Copies, optional
        The deformed copies of each sample over which outputs are averaged.

    Attributes
    ----------
    networks : tuple of TrainedNetwork
        Each with its `path`, its `network`, and the `metadata` of its file, such as the errors of
        the pretrained one.
    pixels : PixelSpec
        The pixels that the first network takes, and how they become images; the others take the
        same.
    backend : Backend
    copies : Copies or None
    classes : ndarray, shape (n_classes,)
        What each output stands for: 0 to n_classes - 1 unless the training data had others.

    Raises
    ------
    InputError
        When there is no network, or they do not match each other.
    """

    __module__ = "mlpcore"

    def __init__(
        self, networks: Sequence[TrainedNetwork], backend: Backend, copies: Copies | None = None
    ):
        if not networks:
            raise InputError("no networks: expected at least one")
        self.networks = tuple(networks)
        self.backend, self.copies = backend, copies
        self.pixels: PixelSpec = networks[0].pixels
        for each in networks:
            _check_same_images(each, networks[0])
        self.classes: AnyArray = np.array(networks[0].classes)

    def to_images(self, pictures: object) -> Float32Array:
        """The images (n, H, W) in [-1, 1] of pictures, as a `Dataset` holds them."""
        if are_pictures(pictures):
            return np.stack([each.image for each in find_digits(pictures, self.pixels)])
        return images_of_pixels(pictures, self.networks[0], stacklevel=3)

    def answers(self, pictures: object) -> list[Answer]:
        """The digit in each picture, the outputs for it, and what is wrong with it.

        Parameters
        ----------
        pictures
            Files and PIL images, as `predict` takes them, but no arrays.
        """
        digits = find_digits(pictures, self.pixels)
        images = np.stack([each.image for each in digits])
        no_digit = "probably shows no digit: expected one"
        return [
            Answer(each, outputs, each.warning or (f"{each.name} {no_digit}" if doubt else ""))
            for each, outputs, doubt in zip(
                digits, self.outputs_of_digits(images), self.doubtful(images)
            )
        ]

    def outputs(self, images: Float32Array) -> Float64Array:
        """Outputs (n, n_classes) for images (n, H, W) of a `Dataset`; the mean for a committee.

        They are probabilities if the loss is cross-entropy, else near -1 and 1. A committee of both
        losses averages probabilities.
        """
        outputs = self.member_outputs(images)
        return evaluation.mean_outputs([each.network for each in self.networks], outputs)

    def outputs_of_digits(self, images: Float32Array) -> Float64Array:
        """Outputs (n, n_classes) for images (n, H, W) of digits that were found in pictures.

        They are the mean for the digit as it is, turned until it leans half as much, and turned
        until it is upright (`mlpcore.inference.slant`). With copies, and for networks of things
        other than digits, they are those of `outputs`.
        """
        if self.copies is not None or not self.reads_digits:
            return self.outputs(images)
        forms = [images, *turned_back(images, self.backend)]
        outputs = self.outputs(np.concatenate(forms))
        return np.mean(np.split(outputs, len(forms)), axis=0)

    def member_outputs(self, images: Float32Array) -> list[Float64Array]:
        """Outputs (n, n_classes) of each network for images (n, H, W) of a `Dataset`."""
        images = check_array("images", images, (None, *self.pixels.image_shape))
        if not np.isfinite(images).all():
            raise InputError("the images are not all finite: expected numbers")
        result = []
        for each in self.networks:
            inputs = each.pixels.to_inputs(each.pixels.rescale(images, self.pixels))
            if self.copies is None:
                outputs = evaluation.outputs(each.network, inputs, self.backend)
            else:
                seen = inputs.reshape(-1, *each.pixels.image_shape)
                outputs = self.copies.outputs(each.network, seen, self.backend)
            if not np.isfinite(outputs).all():
                raise InputError(f"{shown(each.path)}: outputs are not finite, expected numbers")
            result.append(outputs)
        return result

    def evaluate(
        self, images: Float32Array | Images, labels: AnyArray
    ) -> tuple[Evaluation, list[Evaluation]]:
        """The evaluation of all networks together, and that of each.

        Parameters
        ----------
        images : ndarray of float32, shape (n, h, w), or such as `Dataset.test_set`
            As a `Dataset` of the first network's training holds them, in [-1, 1].
        labels : ndarray of int, shape (n,)
            The output that stands for the class of each image.
        """
        begins = range(0, max(len(images), 1), evaluation.BATCH)
        parts = [self.member_outputs(images[begin : begin + evaluation.BATCH]) for begin in begins]
        outputs = [np.concatenate(each) for each in zip(*parts)]
        mean = evaluation.mean_outputs([each.network for each in self.networks], outputs)
        return Evaluation.of(mean, labels), [Evaluation.of(each, labels) for each in outputs]

    def predict_proba(self, pictures: object) -> Float64Array:
        """Probabilities (n, n_classes) of the classes; the class of `predict` has the greatest.

        They are the outputs of a softmax. Those of the squared loss are estimated
        (`mlpcore.evaluation.probabilities.of_outputs`).
        """
        return self.to_probabilities(self._outputs_for(pictures))

    def _outputs_for(self, pictures: object) -> Float64Array:
        """Outputs (n, n_classes) for what `predict` takes, with warnings."""
        if not are_pictures(pictures):
            images = images_of_pixels(pictures, self.networks[0], stacklevel=4)
            return self.outputs(images)
        answers = self.answers(pictures)
        for each in answers:
            if each.warning:
                warnings.warn(each.warning, PictureWarning, stacklevel=3)
        return np.stack([each.outputs for each in answers])

    def to_probabilities(self, outputs: Float64Array) -> Float64Array:
        """The probabilities (n, n_classes) from what `outputs` gave."""
        if any(each.network.loss == "cross-entropy" for each in self.networks):
            return outputs
        # The mean of the outputs is drawn to the mean of the targets.
        target = float(np.mean([each.target for each in self.networks]))
        return probabilities.of_outputs(outputs, target)

    def predict(self, pictures: object) -> AnyArray:
        """The class of each picture, (n,): the first with the greatest output."""
        return self.classes[self._outputs_for(pictures).argmax(axis=1)]

    def predict_images(self, images: Float32Array) -> AnyArray:
        """The class (n,) of each image (n, H, W) of a `Dataset`."""
        if np.size(images) and np.min(images) >= 0:
            raise InputError(
                f"images from {np.min(images):g} to {np.max(images):g}: expected -1 (the "
                "background) to 1, as a Dataset holds them; predict takes pixels"
            )
        return self.classes[self.outputs(images).argmax(axis=1)]

    @property
    def reads_digits(self) -> bool:
        """True if the first network was trained on MNIST, or on scikit-learn's digits."""
        return self.networks[0].data_name in (MNIST, EMBEDDED)

    def doubtful(self, images: Float32Array) -> BoolArray:
        """Tell which images (n, H, W) of a `Dataset` probably show no digit, (n,).

        The answers for these mean nothing. `mlpcore.inference.rejector` judges this at a few per
        cent of the cost of an answer of net1. Only networks trained on MNIST, or on scikit-learn's
        digits, have doubts.
        """
        if not self.reads_digits:
            return np.zeros(len(images), bool)
        return rejector.doubtful(images, self.backend)

    def __repr__(self) -> str:
        each = ", ".join(
            f"{PRETRAINED if n.path == PRETRAINED_FILE else shown(n.path)}: "
            f"{format_layer_sizes(n.network.layer_sizes)}"
            for n in self.networks
        )
        mean = f"mean of {len(self.networks)}: " if len(self.networks) > 1 else ""
        height, width = self.pixels.pixel_shape
        name = self.backend.description.partition(":")[0]
        return f"TrainedClassifier({mean}{each}; pictures of {height} x {width}; {name})"


def _check_same_images(one: TrainedNetwork, first: TrainedNetwork) -> None:
    name, other = shown(one.path), shown(first.path)
    if one.classes != first.classes:
        raise InputError(f"{name} has different classes than {other}: expected the same")
    if one.pixels.image_shape != first.pixels.image_shape:
        found, expected = (" x ".join(map(str, n.pixels.image_shape)) for n in (one, first))
        raise InputError(
            f"{name} is a network for images of {found}: expected {expected}, as {other} takes"
        )
    (low, high), (least, greatest) = one.pixels.value_range, first.pixels.value_range
    both, narrow = max(high, greatest) - min(low, least), min(high - low, greatest - least)
    if one.pixels.rescaling(first.pixels) != (1, 0) and both > 2 * narrow:
        raise InputError(
            f"{name} is a network for pixels from {low:g} to {high:g}: expected about {least:g} to "
            f"{greatest:g}, as {other} takes"
        )
