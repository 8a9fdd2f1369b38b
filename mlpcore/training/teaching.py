"""Distillation: another network learns what trained networks answer.

G. Hinton, O. Vinyals and J. Dean (2015), *Distilling the knowledge in a neural network*. Here the
answers are probabilities without a temperature, and they are of the same deformed images.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.checks import check_real
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError, shown
from mlpcore.typing import AnyArray, Float32Array, Float64Array, UInt8Array

if TYPE_CHECKING:
    from mlpcore.training.config import TrainingConfig

PART = 512
"""Images that a teacher is shown at once. A stop waits for the end of a part."""


@dataclass(frozen=True)
class Teaching:
    """Whose answers a network learns.

    Parameters
    ----------
    paths
        Where the teacher's networks were when the run began.
    sha256
        The checksum of the teacher (`Teacher.sha256`).
    weight
        The share of the teacher's probabilities in the targets, more than 0 and at most 1. The
        labels have the rest.

    Raises
    ------
    InputError
        When a value is not of the right type or out of range.
    """

    paths: tuple[str, ...]
    sha256: str
    weight: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.sha256, str) and re.fullmatch("[0-9a-f]{64}", self.sha256)):
            found = reprlib.repr(self.sha256)
            raise InputError(f"SHA-256 of a teacher {found}: expected 64 digits")
        check_real("teacher weight", self.weight)
        if not 0 < self.weight <= 1:
            raise InputError(f"teacher weight {self.weight}: expected more than 0, at most 1")
        object.__setattr__(self, "weight", float(self.weight))

    @property
    def names(self) -> str:
        """The paths, for messages."""
        return ", ".join(map(shown, self.paths))

    def targets(self, probabilities: Float64Array, labels: UInt8Array) -> Float32Array:
        """The soft targets (n, n_classes) of images with these labels."""
        targets = self.weight * probabilities
        targets[np.arange(len(labels)), labels] += 1 - self.weight
        return targets.astype(np.float32)


class Teacher(Protocol):
    """What a `Trainer` needs of a teacher. `mlpcore.inference.Teacher` is one."""

    @property
    def sha256(self) -> str:
        """Of all that decides its answers, as 64 hexadecimal digits."""

    def prepare(self, config: TrainingConfig, dataset: Dataset) -> None:
        """Gets ready for the epochs of a training with these settings on these data.

        Raises
        ------
        InputError
            When the teacher knows other images or classes.
        """

    def probabilities(self, part: slice, images: AnyArray, epoch: int) -> Float64Array:
        """The answers (n, n_classes) for a part of the training set, as an epoch shows it.

        `images` (n, h, w) are what the student is shown, in its width and range. The teacher sees
        the same images in its own, deformed by the same maps.
        """


def check_teacher(teaching: Teaching | None, teacher: Teacher | None, backend: Backend) -> None:
    """Raises InputError unless this is the teacher of the settings, and the backend can use it."""
    if teaching is None or teacher is None:
        if teaching is None and teacher is None:
            return
        lacks = "the settings name none" if teaching is None else "there is none"
        raise InputError(f"teacher: {lacks}, expected one in the settings and the same here")
    if not backend.can_soften:
        raise InputError(
            f"teacher: the backend {backend.name} trains on labels alone, expected a CPU backend"
        )
    if teacher.sha256 != teaching.sha256:
        raise InputError(
            f"teacher {teaching.names}: expected the weights with the SHA-256 "
            f"{teaching.sha256[:12]}..., found {teacher.sha256[:12]}..."
        )
