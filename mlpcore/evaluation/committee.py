"""Several networks that decide together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.errors import InputError
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.network.network import Network
from mlpcore.typing import AnyArray, Float64Array


class Committee:
    """Networks that decide by the mean of their outputs.

    The errors of networks from different seeds, architectures or deformations differ and so
    partly cancel (U. Meier, D. C. Cireşan, L. M. Gambardella and J. Schmidhuber (2011), Better
    digit recognition with a committee of simple neural nets, ICDAR). Outputs are not scaled: a
    network that was trained to larger targets has more weight. Networks of different losses decide
    by the mean of their probabilities (`mlpcore.evaluation.probabilities`).

    Parameters
    ----------
    networks
        One or more, all with the same numbers of inputs and of classes, and the same range of
        inputs.

    Raises
    ------
    InputError
        When there is no network, or the numbers differ.
    """

    def __init__(self, networks: Sequence[Network]):
        self.networks = tuple(networks)
        if not self.networks:
            raise InputError("a committee of no networks: expected at least one")
        n_inputs, *_, n_classes = self.networks[0].layer_sizes
        for number, network in enumerate(self.networks, 1):
            sizes = network.layer_sizes
            if (sizes[0], sizes[-1]) != (n_inputs, n_classes):
                raise InputError(
                    f"network {number} of a committee is {format_layer_sizes(sizes)}: expected "
                    f"{n_inputs} inputs and {n_classes} classes, as the first has"
                )

    def outputs(self, images: AnyArray, backend: Backend) -> Float64Array:
        """Mean outputs (n, n_classes); arguments and errors are those of `evaluation.outputs`."""
        outputs = [evaluation.outputs(n, images, backend) for n in self.networks]
        return evaluation.mean_outputs(self.networks, outputs)

    def predict(self, images: AnyArray, backend: Backend) -> AnyArray:
        """The first class with the greatest mean output, (n,)."""
        return self.outputs(images, backend).argmax(axis=1)

    def evaluate(self, images: AnyArray, labels: AnyArray, backend: Backend) -> Evaluation:
        """The committee's evaluation; arguments and errors are those of `evaluation.evaluate`."""
        return Evaluation.of(self.outputs(images, backend), labels)


def compare(first: Evaluation, second: Evaluation) -> tuple[int, int, float]:
    """How many samples only the first, and only the second evaluation gets wrong, and a p-value.

    This is how probable a difference at least as great would be if both were as good: of the
    samples that one alone gets wrong, each would do so for half of them (two-sided; Q. McNemar
    (1947), Note on the sampling error of the difference between correlated proportions,
    Psychometrika 12).
    """
    from scipy.special import bdtr  # not above: few need it

    both = shared_errors([first, second])[0, 1]
    alone = int(first.errors - both), int(second.errors - both)
    return (*alone, min(1.0, 2 * float(bdtr(min(alone), sum(alone), 0.5))))


def shared_errors(evaluations: Sequence[Evaluation]) -> AnyArray:
    """Samples that two of m evaluations of the same samples both get wrong, (m, m).

    The diagonal has the errors of each.
    """
    wrong = np.zeros((len(evaluations), evaluations[0].n), np.int64)
    for row, each in zip(wrong, evaluations):
        row[each.misclassified.indices] = 1
    return wrong @ wrong.T
