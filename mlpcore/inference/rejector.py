"""A second opinion on digits: a small network beside those that read, which knows other ink, too.

The outputs of a network that has only seen digits are sure of noise and letters, too, and so are
its answers for deformed copies of them (benchmarks/tried.md has figures). So a network of 256 and
96 hidden neurons has learnt digits and, as an eleventh class, pictures of none, which
`tools/rejector.py` of revision 1818d6e4 makes. It does not depend on the network that reads, so
where both are sure of an answer, it is rarely wrong.
"""

from functools import cache
from pathlib import Path

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.evaluation.evaluation import outputs
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import BoolArray, Float32Array, Float64Array

REJECTOR_FILE = Path(__file__).resolve().parents[1] / "pretrained" / "rejector.safetensors"

#: In `with_opinion`, the weight of this network, the least probability that counts, and that of no
#: digit by the other network, which has only seen digits.
SHARE, LEAST, UNSEEN = 0.3, 1e-4, 0.01


@cache
def network() -> TrainedNetwork:
    """The network, whose outputs are probabilities: of the ten digits, and of no digit."""
    return TrainedNetwork.read(REJECTOR_FILE)


def threshold() -> float:
    """The least probability of a digit that is in no doubt."""
    return float(network().metadata["threshold"])


def doubtful(images: Float32Array, backend: Backend) -> BoolArray:
    """Tell which images (n, 29, 29) in [-1, 1] of MNIST's format probably show no digit, (n,).

    It costs a pass through a network of 240,000 weights for each image, where net1 has 1.3 million.
    """
    result: BoolArray = 1 - _opinion(images, backend)[:, -1] < threshold()
    return result


def with_opinion(
    probabilities: Float64Array, views: list[Float32Array], backend: Backend
) -> Float64Array:
    """Pools another network's probabilities (n, 10) with this one's: (n, 11), the last of no digit.

    It is the weighted geometric mean, of all views (n, 29, 29), too (logarithmic opinion pool).
    """
    own = np.pad(probabilities, ((0, 0), (0, 1)), constant_values=UNSEEN)
    pooled = np.maximum(own, LEAST) ** (1 - SHARE)
    for each in views:
        pooled *= np.maximum(_opinion(each, backend), LEAST) ** (SHARE / len(views))
    return pooled / pooled.sum(axis=1, keepdims=True)


def _opinion(images: Float32Array, backend: Backend) -> Float64Array:
    """The network's outputs (n, 11)."""
    judge = network()
    return outputs(judge.network, judge.pixels.to_inputs(images), backend).astype(np.float64)
