"""Predictions averaged over deformed copies of an image."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.checks import check_real, check_whole
from mlpcore.data.pixels import batches
from mlpcore.deformation import DeformationParameters, displacements
from mlpcore.deformation.values import border_values
from mlpcore.errors import InputError
from mlpcore.network.network import Network
from mlpcore.typing import Float32Array, Float64Array

MAX_COPIES = 1_000_000
MAX_STRENGTH = 5.0
"""Rotations of nearly 90 degrees, and images of nearly no width, say nothing about a digit."""


@dataclass(frozen=True)
class Copies:
    """The deformed copies of an image over which a prediction is averaged.

    Copy k of every image is deformed with the same map: the one that training with the default
    deformation, made weaker, would give to image k in its first epoch. So the answer for an image
    does not depend on other images. Labels play no part: where training turns a 1 or a 7 by half
    the angle only, copies of all images turn by the full angle.

    An image is deformed after it has become the input of a network, as in training. Networks of a
    committee get the same maps of their own inputs.

    Parameters
    ----------
    n
        How many; each costs a pass through the network.
    strength
        The factor of alpha, beta and gamma of `DeformationParameters`, which are 36 pixels, 15
        degrees and 15 percent. Sigma remains 6 pixels.
    seed
        The seed of the maps.

    Raises
    ------
    InputError
        When a value is out of range.
    """

    n: int
    strength: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("copies", self.n, 1, MAX_COPIES)
        check_real("strength", self.strength)
        if not 0 < self.strength <= MAX_STRENGTH:
            raise InputError(
                f"strength {self.strength}: expected more than 0, at most {MAX_STRENGTH:g}"
            )
        check_whole("seed", self.seed, 0, 2**64 - 1)

    @property
    def parameters(self) -> DeformationParameters:
        """The deformation of the copies."""
        usual = DeformationParameters(similar_labels=())
        return usual.set_params(
            **{name: self.strength * getattr(usual, name) for name in ("alpha", "beta", "gamma")}
        )

    def describe(self, n_networks: int) -> str:
        """A line that says what is averaged, and what a prediction by these networks costs."""
        p = self.parameters
        each = f" of {n_networks} networks" if n_networks > 1 else ""
        return (
            f"copies: {self.n:,} of each image, deformed at strength {self.strength:g} (alpha "
            f"{p.alpha:g}, beta {p.beta:g}, gamma {p.gamma:g}, seed {self.seed}); "
            f"{self.n * n_networks:,} passes{each} per prediction"
        )

    def to_json(self, n_networks: int) -> dict[str, object]:
        """The content of `describe`, as plain values."""
        return asdict(self) | {"passes": self.n * n_networks}

    def outputs(self, network: Network, images: Float32Array, backend: Backend) -> Float64Array:
        """Mean outputs (n, n_classes) of a network for the copies of images (n, h, w), float32.

        The images are in the network's range of inputs. Around each is the median of its border.
        """
        n, height, width = images.shape
        totals = np.zeros((n, network.layer_sizes[-1]))
        loaded = backend.load(network)
        for copies in batches(self.n, 2 * height * width):
            numbers = np.arange(self.n)[copies]
            labels = np.zeros(len(numbers), np.uint8)  # none is similar to another
            drawing = self.parameters, self.seed, 0, backend
            fields = displacements((height, width), numbers, labels, *drawing)
            for part in batches(n, fields.size):
                shown = _deformed(images[part], fields, backend)
                inputs = backend.put(shown.reshape(-1, height * width))
                outputs = backend.predict(loaded, inputs).astype(np.float64)
                totals[part] += outputs.reshape(*shown.shape[:2], -1).sum(axis=0)
        return totals / self.n


def _deformed(images: Float32Array, fields: Float32Array, backend: Backend) -> Float32Array:
    """Copies (c, m, h, w) of images (m, h, w), each by the displacements (c, 2, h, w)."""
    around = border_values(images[:, None])[:, None, None]
    shape = len(fields), *images.shape
    copies = np.broadcast_to(images - around, shape).reshape(-1, *images.shape[1:])
    maps = np.broadcast_to(np.eye(2, dtype=np.float32), (len(copies), 2, 2))
    deformed = backend.deform_by(copies, maps, np.repeat(fields, len(images), axis=0), 0.0)
    return deformed.reshape(shape) + around
