"""Several networks that decide together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.errors import InputError
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.network import Network
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.typing import AnyArray, Float64Array


class Committee:
    """Networks whose outputs are averaged as they are.

    One that was trained to larger targets thus counts for more.

    Their errors differ where they were trained from other seeds, in other architectures or on
    other deformations, and so partly cancel. U. Meier, D. C. Cireşan, L. M. Gambardella and
    J. Schmidhuber (2011), Better digit recognition with a committee of simple neural nets, ICDAR.

    Parameters
    ----------
    networks
        At least one; all of the same number of inputs and of classes.

    Raises
    ------
    InputError
        When there is none, or they do not fit each other.
    """

    def __init__(self, networks: Sequence[Network]):
        self.networks = tuple(networks)
        if not self.networks:
            raise InputError("a committee of no networks: expected at least one")
        first = self.networks[0].layer_sizes
        for number, network in enumerate(self.networks[1:], 2):
            sizes = network.layer_sizes
            if (sizes[0], sizes[-1]) != (first[0], first[-1]):
                raise InputError(
                    f"network {number} of a committee is {format_layer_sizes(sizes)}: expected "
                    f"{first[0]} inputs and {first[-1]} classes, as the first has"
                )

    def outputs(self, images: AnyArray, backend: Backend) -> Float64Array:
        """Mean outputs (n, n_classes) for images (n, h, w) or (n, n_in), float32.

        Raises
        ------
        InputError
            When the images do not fit the networks.
        """
        return mean_outputs([evaluation.outputs(n, images, backend) for n in self.networks])

    def predict(self, images: AnyArray, backend: Backend) -> AnyArray:
        """Classes (n,) of the greatest mean output, the first such; else as `outputs`."""
        return self.outputs(images, backend).argmax(axis=1)

    def evaluate(self, images: AnyArray, labels: AnyArray, backend: Backend) -> Evaluation:
        """Evaluates the committee for labels (n,); else as `outputs` and `Evaluation.of`."""
        return Evaluation.of(self.outputs(images, backend), labels)


def mean_outputs(outputs: Sequence[AnyArray]) -> Float64Array:
    """The mean (n, n_classes) of the outputs (n, n_classes) of several networks."""
    return np.asarray(np.mean(outputs, axis=0, dtype=np.float64))
