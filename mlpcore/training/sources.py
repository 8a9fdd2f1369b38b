"""Sources of a training's samples, in the order in which an epoch presents them.

A `Trainer` asks a `Source` for segments of an epoch and knows nothing of where they come from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mlpcore import deformation, philox
from mlpcore.backends.arguments import check_range, check_shape, check_weights
from mlpcore.backends.base import Backend
from mlpcore.checks import real_array
from mlpcore.cpu import check_memory
from mlpcore.data.dataset import Dataset, Images
from mlpcore.data.pixels import PixelSpec
from mlpcore.deformation.deform import gaussian_taps
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.deformation.values import background_of
from mlpcore.errors import InputError
from mlpcore.network.architecture import count_parameters
from mlpcore.training.config import TrainingConfig
from mlpcore.typing import (
    AnyArray,
    ArrayLike,
    BackendArray,
    Float32Array,
    LoadedNetwork,
    UInt8Array,
)

#: Samples of a segment, all learnt at the same rates. A power of two, so that the blocks of a
#: backend are the same wherever an epoch was interrupted.
SEGMENT = 8192

#: Inputs of a segment that are made of pixels, in float32: fewer samples where images are large.
ROOM = 2**24


class Segment(NamedTuple):
    """Consecutive samples of an epoch, or samples whose errors are counted.

    Inputs are a float32 array (n, n_inputs) where the backend computes, of which step k learns row
    ``order[k]``; or SciPy's compressed sparse rows, learnt one after the other. Labels (n,) and
    weights (n,) are those of the rows.
    """

    inputs: Any
    labels: BackendArray
    order: BackendArray | None = None
    weights: BackendArray | None = None


class Source(ABC):
    """The samples of a training run."""

    n_samples: int  #: of an epoch
    n_inputs: int  #: the size of the first layer of a network for them
    n_classes: int  #: the size of the last one
    total_weight: float  #: the sum of the samples' weights, each 1 by default
    validation: Segment | None = None  #: the samples without deformation; None validates none
    test: Segment | None = None  #: other samples
    held_out: int = 0  #: how many of the test samples were held out from those for training
    is_sparse: bool = False  #: whether inputs are compressed sparse rows
    room: int = SEGMENT  #: samples that a segment can have; it divides `SEGMENT`

    @property
    def n_test(self) -> int:
        """The number of test samples."""
        return 0 if self.test is None else len(self.test.labels)

    @abstractmethod
    def reserve(self, network: LoadedNetwork) -> None:
        """Allocates the other memory of an epoch, so that no run fails midway."""

    @abstractmethod
    def begin(self, epoch: int) -> None:
        """Draws the order of an epoch, counted from 0. It may begin again after a stop."""

    @abstractmethod
    def segment(self, epoch: int, begin: int, end: int) -> Segment:
        """The samples begin ... end - 1 of an epoch that has begun, until the next is asked for.

        They are within a multiple of `room` and the next one.
        """

    def parts(self, samples: Segment) -> Iterator[Segment]:
        """The inputs and labels of `validation` or `test`, a few at a time."""
        yield samples

    def _weigh(self, sample_weight: ArrayLike | None) -> Float32Array | None:
        """The weights (n_samples,) as float32, and their sum as `total_weight`."""
        self.total_weight = float(self.n_samples)
        if sample_weight is None:
            return None
        given: AnyArray = real_array("sample_weight", sample_weight)
        check_shape("sample_weight", given, (self.n_samples,), given.dtype)
        with np.errstate(over="ignore"):
            weights = given.astype(np.float32)
        check_weights(weights)
        if not weights.any():
            raise InputError("sample_weight: all are 0, expected one above 0")
        self.total_weight = float(weights.sum(dtype=np.float64))
        return weights


class ArraySource(Source):
    """Images, in an order that is drawn for each epoch, and deformed in this order.

    A segment is gathered, deformed and handed over in memory that the next one uses again. The
    place of an image in the epoch decides how it is deformed, as its number does in
    `mlpcore.deformation.deform`.

    `images` (n, h, w) are float32, as the network gets them but for the deformation; they may be
    made when they are taken, as `Dataset.train_set` is. With `pixels`, which says how inputs come
    from bytes, they are uint8 (n, *pixels.pixel_shape), and deformations look up the bytes.
    `labels` (n,) are uint8, or the targets (n, n_classes) float32 of linear or sigmoid outputs,
    which have no errors to count. The seed is that of the orders and deformations; the identity
    leaves the images as they are, and an array of them where it is. `sample_weight` (n,), 0 or
    more, is the factor of the learning rate of each sample, and of its loss in the mean of an
    epoch; errors count without weights. `single_pass` makes the order that of the array, and the
    random numbers those of this epoch, without a validation; None stands for epochs with an order
    of their own.

    An InputError is raised when a label is not below `n_classes`, or all weights are 0.
    """

    def __init__(
        self,
        images: Any,
        labels: UInt8Array,
        n_classes: int,
        backend: Backend,
        seed: int,
        deformation: DeformationParameters,
        sample_weight: ArrayLike | None = None,
        single_pass: int | None = None,
        pixels: PixelSpec | None = None,
    ):
        shape = images.shape[1:] if pixels is None else pixels.image_shape
        self.n_samples, self.n_inputs = len(labels), math.prod(shape)
        self.n_classes = n_classes
        if labels.ndim == 1:
            check_range("train labels", labels, n_classes)
        backend.check_option("sample_weight", sample_weight)
        weights = self._weigh(sample_weight)
        self._weights = None if weights is None else backend.put(weights)
        self._backend, self._seed, self._deformation = backend, seed, deformation
        self._single_pass, self._pixels = single_pass, pixels
        self._images, self._labels = backend.put(images), backend.put(labels)
        self._order = backend.put(np.arange(self.n_samples, dtype=np.int32))
        if single_pass is None and labels.ndim == 1:
            self.validation = Segment(self._images, self._labels)
        #: Whether samples are learnt where they are.
        self._stay = pixels is None and deformation.is_identity
        self._stay = self._stay and not isinstance(self._images, Images)
        if self._stay:
            return
        self.room = SEGMENT
        while self.room > 64 and self.room * self.n_inputs > ROOM:
            self.room //= 2
        n = min(self.room, self.n_samples)
        self._places = backend.put(np.arange(n, dtype=np.int32))
        self._taken = backend.put(np.empty((n, *images.shape[1:]), images.dtype))
        self._taken_labels = backend.put(np.empty((n, *labels.shape[1:]), labels.dtype))
        self._shown = backend.put(np.empty((n, *shape), np.float32))
        self._maps = backend.put(np.empty((n, 2, 2), np.float32))
        self._background = background_of(images)
        if pixels is not None:
            self._background = float(pixels.inputs_of_bytes[int(self._background)])

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        config: TrainingConfig,
        backend: Backend,
        sample_weight: ArrayLike | None = None,
    ) -> ArraySource:
        """The training images of a data set, in the range of the network's inputs, and its test.

        An InputError as by the class, and when ones and sevens are to get strokes and the data have
        none, or the machine has too little memory.
        """
        sizes = (dataset.n_inputs, *config.hidden_layers, dataset.n_classes)
        # The current and the best network, what the backend packs, and what is being saved; a
        # segment of pixels and of inputs; the order with what it is drawn by; and the ones, sevens
        # and zeros with strokes, which are a quarter of ten digits.
        n_images = len(dataset.train_labels) + len(dataset.test_labels)
        needed = 16 * count_parameters(sizes) + 5 * min(ROOM, n_images * dataset.n_inputs)
        needed += 64 * len(dataset.train_labels)
        needed += int(config.ones_and_sevens * n_images * dataset.n_inputs)
        check_memory(needed, "a network and data of this size")
        drawn = dataset.with_strokes(config.ones_and_sevens, config.seed)
        ranged = drawn.as_inputs(config.input_range)
        in_bytes = ranged.pixels.whole and not ranged.pixels.margin
        looks_up = in_bytes and ranged.drawn is None
        train: Any = ranged.train_pixels
        test: Any = ranged.test_pixels
        if not looks_up:
            convert = backend.to_inputs if in_bytes else None
            train = replace(ranged.train_set, convert=convert)
            test = replace(ranged.test_set, convert=convert)
        source = cls(
            train,
            dataset.train_labels,
            dataset.n_classes,
            backend,
            config.seed,
            config.deformation,
            sample_weight,
            pixels=ranged.pixels if looks_up else None,
        )
        check_range("test labels", dataset.test_labels, dataset.n_classes)
        source.test = Segment(backend.put(test), backend.put(dataset.test_labels))
        source.held_out = dataset.held_out
        return source

    def _flat(self, images: BackendArray) -> BackendArray:
        """A view of images (n, h, w) as inputs of a network (n, h w)."""
        return images.reshape(len(images), self.n_inputs)

    def reserve(self, network: LoadedNetwork) -> None:
        """Allocates memory for the deformation and for training on a device."""
        images, labels = self._images, self._labels
        if not self._stay:
            images, labels = self._shown, self._taken_labels
        taps = gaussian_taps(self._deformation.sigma)
        self._backend.reserve(network, images, labels, taps.shape)

    def begin(self, epoch: int) -> None:
        """Draws the order."""
        if self._single_pass is None:
            self._order = None  # freed before more is taken
            order = philox.permutation(self.n_samples, self._seed, epoch)
            self._order = self._backend.put(order)

    def segment(self, epoch: int, begin: int, end: int) -> Segment:
        """All images and the part of the order, or else the images that it names, deformed.

        These begin at a multiple of `room`, wherever training goes on: a backend looks at the
        first ones to choose how it computes.
        """
        rows = self._order[begin:end]
        if self._stay:
            return Segment(self._flat(self._images), self._labels, rows, self._weights)
        if self._single_pass is not None:
            epoch = self._single_pass
        first = begin - begin % self.room
        rows, n, take = self._order[first:end], end - first, self._backend.take
        labels = take(self._labels, rows, self._taken_labels[:n])
        shown = take(self._images, rows, self._taken[:n])
        if not self._deformation.is_identity:
            of_maps = labels  # but targets say nothing of how an image may be turned
            if len(labels.shape) > 1:
                of_maps = self._backend.put(np.zeros(len(labels), np.uint8))
            shown = deformation.deform(
                shown,
                of_maps,
                self._deformation,
                self._seed,
                epoch,
                self._backend,
                first=first,
                out=self._shown[:n],
                maps=self._maps[:n],
                background=self._background,
                pixels=self._pixels,
            )
        elif self._pixels is not None:
            shown = self._backend.to_inputs(shown, self._pixels, self._shown[:n])
        weights = None if self._weights is None else self._weights[rows]
        return Segment(self._flat(shown), labels, self._places[begin - first : n], weights)

    def parts(self, samples: Segment) -> Iterator[Segment]:
        """The samples, as many at a time as a segment has."""
        images, labels, *_ = samples
        size = SEGMENT if self._stay else len(self._shown)
        for begin in range(0, len(labels), size):
            part = slice(begin, begin + size)
            inputs = images[part]
            if self._pixels is not None:
                out = self._shown[: len(inputs)]
                inputs = self._backend.to_inputs(inputs, self._pixels, out)
            yield Segment(self._flat(inputs), labels[part])


class SparseSource(Source):
    """Rows of a sparse matrix, of which none is made dense, in an order drawn for each epoch.

    `rows` is a float32 matrix of SciPy in compressed sparse rows, (n, n_inputs), in canonical
    format. The other arguments are as for `ArraySource`.
    """

    is_sparse = True

    def __init__(
        self,
        rows: Any,
        labels: UInt8Array,
        n_classes: int,
        seed: int,
        sample_weight: ArrayLike | None = None,
    ):
        self.n_samples, self.n_inputs = rows.shape
        self.n_classes = n_classes
        if labels.ndim == 1:
            check_range("train labels", labels, n_classes)
            self.validation = Segment(rows, labels)
        self._weights = self._weigh(sample_weight)
        self._rows, self._labels, self._seed = rows, labels, seed

    def reserve(self, network: LoadedNetwork) -> None:
        """Allocates nothing, because training runs on the CPU."""

    def begin(self, epoch: int) -> None:
        """Draws the order."""
        self._order = philox.permutation(self.n_samples, self._seed, epoch)

    def segment(self, epoch: int, begin: int, end: int) -> Segment:
        """Copies of the rows in their order."""
        part = self._order[begin:end]
        weights = None if self._weights is None else self._weights[part]
        return Segment(self._rows[part], self._labels[part], None, weights)
