"""Trained networks as the teacher of another (`mlpcore.training.teaching`)."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence

from mlpcore.data.dataset import Dataset
from mlpcore.data.scaling import BACKGROUNDS
from mlpcore.deformation import deform
from mlpcore.errors import InputError
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.committee import mean_outputs
from mlpcore.inference.classifier import PRETRAINED, load
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.config import TrainingConfig
from mlpcore.training.teaching import Teaching
from mlpcore.typing import AnyArray, Float32Array, Float64Array, StrPath


class Teacher:
    """One or more trained networks, whose mean probabilities a `Trainer` adds to the targets.

    Each network gets its own inputs from an image: it is brought to the network's width and range
    first, and deformed by the student's map then. So all see the same deformed image, each in its
    own way. The undeformed inputs are kept in memory, once for all networks of the same width and
    range.

    Parameters
    ----------
    source, backend, threads
        As for `mlpcore.load`.

    Raises
    ------
    InputError
        As `mlpcore.load`.
    """

    def __init__(
        self,
        source: StrPath | Sequence[StrPath],
        *,
        backend: str = "cpu",
        threads: int | None = None,
    ):
        self._classifier = load(source, backend=backend, threads=threads)
        sources = [source] if isinstance(source, (str, os.PathLike)) else source
        self._paths = tuple(map(_absolute, sources))
        self._images: dict[tuple[str, int | None], Float32Array] = {}

    @property
    def networks(self) -> tuple[TrainedNetwork, ...]:
        """The networks."""
        return self._classifier.networks

    @functools.cached_property
    def sha256(self) -> str:
        """Of the weights, and of how they see images."""
        digest = hashlib.sha256()
        for each in self.networks:
            network = each.network
            kind = network.layer_sizes, network.activation, network.loss
            seen = each.input.input_range, each.input.width, each.target
            digest.update(repr((*kind, *seen)).encode())
            for array in (*network.weights, *network.biases):
                digest.update(array.tobytes())
        return digest.hexdigest()

    def teaching(self, weight: float = 0.5) -> Teaching:
        """The settings of a training with this teacher, for `TrainingConfig.teacher`."""
        return Teaching(self._paths, self.sha256, weight)

    def prepare(self, config: TrainingConfig, dataset: Dataset) -> None:
        """See `mlpcore.training.teaching.Teacher`."""
        first = self.networks[0]
        found = first.input.image_shape, first.classes
        wanted = dataset.image_shape, tuple(dataset.classes)
        if found != wanted:
            raise InputError(
                f"teacher {self.teaching().names}: knows {_knowledge(*found)}, expected those of "
                f"{dataset.name}, {_knowledge(*wanted)}"
            )
        self._config, self._labels = config, dataset.train_labels
        self._images = {}
        for each in self.networks:
            key = each.input.input_range, each.input.width
            if key != (config.input_range, config.width) and key not in self._images:
                inputs = each.input.of_images(dataset.train_images)
                self._images[key] = inputs.reshape(dataset.train_images.shape)

    def probabilities(self, part: slice, images: AnyArray, epoch: int) -> Float64Array:
        """See `mlpcore.training.teaching.Teacher`."""
        seen = {(self._config.input_range, self._config.width): images}
        for key, inputs in self._images.items():
            seen[key] = self._deformed(inputs[part], part, epoch, BACKGROUNDS[key[0]])
        outputs = [
            evaluation.outputs(
                each.network,
                seen[each.input.input_range, each.input.width],
                self._classifier.backend,
            )
            for each in self.networks
        ]
        mean = mean_outputs([each.network for each in self.networks], outputs)
        return self._classifier.to_probabilities(mean)

    def _deformed(
        self, inputs: Float32Array, part: slice, epoch: int, background: float
    ) -> AnyArray:
        """A part of the training set, deformed as an epoch of the student deforms it."""
        config = self._config
        if config.deformation.is_identity:
            return inputs
        return deform(
            inputs,
            self._labels[part],
            config.deformation,
            config.seed,
            epoch,
            self._classifier.backend,
            first=part.start,
            background=background,
        )


def _absolute(source: StrPath) -> str:
    """Where a teacher is, for a training that goes on in another working folder."""
    path = os.fsdecode(source)
    return path if source == PRETRAINED else os.path.abspath(os.path.expanduser(path))


def _knowledge(image_shape: tuple[int, int], classes: tuple[object, ...]) -> str:
    """Images and classes, in words."""
    height, width = image_shape
    names = ", ".join(map(str, classes[:10])) + ", ..." * (len(classes) > 10)
    return f"images of {height} x {width} and {len(classes)} classes ({names})"
