"""Where a training gets its samples, in the order in which an epoch presents them.

A `Trainer` asks a `Source` for segments of an epoch and knows nothing of where they come from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mlpcore import deformation, philox
from mlpcore.backends.arguments import IMAGES_PER_GRID, check_range, check_shape, check_weights
from mlpcore.backends.base import Backend
from mlpcore.checks import real_array
from mlpcore.cpu import check_memory
from mlpcore.data.dataset import Dataset
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

#: Pixels of the images that are deformed at once, for a tenth of a second, as a stop waits for it.
PART = 2**22

#: Called now and then with the samples that are done. An exception from it ends the work.
Report: TypeAlias = Callable[[int], None]


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
    """The samples of a training.

    Attributes
    ----------
    n_samples, n_inputs, n_classes
        Samples of an epoch, and sizes of the first and the last layer of a network for them.
    total_weight
        The sum of the samples' weights, each 1 by default.
    validation
        The samples without deformation, which validate an epoch; None validates none.
    test
        Other samples, or None.
    held_out
        How many of the test samples were held out from those for training.
    is_sparse
        Whether inputs are compressed sparse rows.
    """

    n_samples: int
    n_inputs: int
    n_classes: int
    total_weight: float
    validation: Segment | None = None
    test: Segment | None = None
    held_out: int = 0
    is_sparse: bool = False

    @property
    def n_test(self) -> int:
        """The number of test samples."""
        return 0 if self.test is None else len(self.test.labels)

    @abstractmethod
    def reserve(self, network: LoadedNetwork) -> None:
        """Allocates the other memory of an epoch, so that no run fails midway."""

    @abstractmethod
    def begin(self, epoch: int, report: Report) -> None:
        """Makes ready what an epoch needs, counted from 0. It may begin again after a stop."""

    @abstractmethod
    def segment(self, epoch: int, begin: int, end: int) -> Segment:
        """The samples begin ... end - 1 of an epoch that has begun."""

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
    """Images in an array, deformed for each epoch, in an order that is drawn for each epoch.

    Parameters
    ----------
    images, labels
        (n, h, w) float32, as the network gets them but for the deformation, and (n,) uint8.
    n_classes
        Labels are less.
    backend
        What trains.
    seed
        That of the orders and deformations.
    deformation
        The identity leaves the images as they are, and in one array.
    sample_weight
        (n,), 0 or more, but not all 0: the factor of the learning rate of each sample, and of its
        loss in the mean of an epoch. Errors count without weights.
    single_pass
        Makes the order that of the array, and the random numbers those of this epoch, without a
        validation. None stands for epochs with an order of their own.

    Raises
    ------
    InputError
        When a label is not below `n_classes`, or all weights are 0.
    """

    def __init__(
        self,
        images: Float32Array,
        labels: UInt8Array,
        n_classes: int,
        backend: Backend,
        seed: int,
        deformation: DeformationParameters,
        sample_weight: ArrayLike | None = None,
        single_pass: int | None = None,
    ):
        self.n_samples, self.n_inputs = len(labels), math.prod(images.shape[1:])
        self.n_classes = n_classes
        check_range("train labels", labels, n_classes)
        backend.check_option("sample_weight", sample_weight)
        weights = self._weigh(sample_weight)
        self._weights = None if weights is None else backend.put(weights)
        self._backend, self._seed, self._deformation = backend, seed, deformation
        self._single_pass = single_pass
        self._images, self._labels = backend.put(images), backend.put(labels)
        self._shown = self._images  # the images of an epoch, deformed or not
        if not deformation.is_identity:
            self._background = background_of(images)
            self._shown = backend.put(np.empty(images.shape, np.float32))
            self._maps = backend.put(np.empty((self.n_samples, 2, 2), np.float32))
        self._order = backend.put(np.arange(self.n_samples, dtype=np.int32))
        if single_pass is None:
            self.validation = Segment(self._flat(self._images), self._labels)

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        config: TrainingConfig,
        backend: Backend,
        sample_weight: ArrayLike | None = None,
    ) -> ArraySource:
        """The training images of a data set, in the range of the network's inputs, and its test.

        Raises
        ------
        InputError
            As the class does, and when ones and sevens are to get strokes and the data have none,
            or the machine has too little memory.
        """
        sizes = (dataset.n_inputs, *config.hidden_layers, dataset.n_classes)
        # The current and the best network, what the backend packs, and what is being saved.
        needed = 4 * 4 * count_parameters(sizes)
        copies = 1 + (config.input_range != "signed") + (not config.deformation.is_identity)
        needed += copies * (dataset.train_images.nbytes + dataset.test_images.nbytes)
        check_memory(needed, "a network and data of this size")
        drawn = dataset.with_strokes(config.ones_and_sevens, config.seed)
        ranged = drawn.as_inputs(config.input_range)
        source = cls(
            ranged.train_images,
            dataset.train_labels,
            dataset.n_classes,
            backend,
            config.seed,
            config.deformation,
            sample_weight,
        )
        check_range("test labels", dataset.test_labels, dataset.n_classes)
        test = backend.put(ranged.test_images), backend.put(dataset.test_labels)
        source.test = Segment(source._flat(test[0]), test[1])
        source.held_out = dataset.held_out
        return source

    def _flat(self, images: BackendArray) -> BackendArray:
        """A view of images (n, h, w) as inputs of a network (n, h w)."""
        return images.reshape(len(images), self.n_inputs)

    def reserve(self, network: LoadedNetwork) -> None:
        """Allocates the memory of the deformation and of the training on a device."""
        taps = gaussian_taps(self._deformation.sigma)
        self._backend.reserve(network, self._shown, self._labels, taps.shape)

    def begin(self, epoch: int, report: Report) -> None:
        """Draws the order, and deforms all images, part by part because a stop waits for a part."""
        if self._single_pass is None:
            self._backend.permutation(self.n_samples, self._seed, epoch, out=self._order)
        else:
            epoch = self._single_pass
        if self._shown is self._images:
            return
        size = max(1, PART // (IMAGES_PER_GRID * self.n_inputs)) * IMAGES_PER_GRID
        for begin in range(0, self.n_samples, size):
            report(begin)
            part = slice(begin, min(begin + size, self.n_samples))
            deformation.deform(
                self._images[part],
                self._labels[part],
                self._deformation,
                self._seed,
                epoch,
                self._backend,
                first=begin,
                out=self._shown[part],
                maps=self._maps[part],
                background=self._background,
            )

    def segment(self, epoch: int, begin: int, end: int) -> Segment:
        """All images and labels, and the part of the order."""
        images = self._flat(self._shown)
        return Segment(images, self._labels, self._order[begin:end], self._weights)


class SparseSource(Source):
    """Rows of a sparse matrix, of which none is made dense, in an order drawn for each epoch.

    Parameters
    ----------
    rows
        A float32 matrix of SciPy in compressed sparse rows, (n, n_inputs), in canonical format.
    labels, n_classes, seed, sample_weight
        As for `ArraySource`.
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
        check_range("train labels", labels, n_classes)
        self._weights = self._weigh(sample_weight)
        self._rows, self._labels, self._seed = rows, labels, seed
        self.validation = Segment(rows, labels)

    def reserve(self, network: LoadedNetwork) -> None:
        """Allocates nothing: a stepper on the CPU trains."""

    def begin(self, epoch: int, report: Report) -> None:
        """Draws the order."""
        self._order = philox.permutation(self.n_samples, self._seed, epoch)

    def segment(self, epoch: int, begin: int, end: int) -> Segment:
        """Copies of the rows in their order."""
        part = self._order[begin:end]
        weights = None if self._weights is None else self._weights[part]
        return Segment(self._rows[part], self._labels[part], None, weights)
