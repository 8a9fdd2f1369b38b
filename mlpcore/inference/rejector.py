"""Images that show no digit: the judgement of a small network beside those that read them.

The outputs of a network that has only seen digits are sure of noise and letters, too, and so are
its answers for deformed copies of them (docs/tried.md has figures). So a network of 96 hidden
neurons has learnt the difference from digits and from pictures of none, which `tools/rejector.py`
of revision 2246b7f makes. It does not depend on the network that reads.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mlpcore.backends.base import Backend
from mlpcore.evaluation.evaluation import outputs
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import BoolArray, Float32Array

REJECTOR_FILE = Path(__file__).resolve().parents[1] / "pretrained" / "rejector.safetensors"


@cache
def network() -> TrainedNetwork:
    """The network, whose second output is the probability of a digit."""
    return TrainedNetwork.read(REJECTOR_FILE)


def threshold() -> float:
    """The least probability of a digit that is in no doubt."""
    return float(network().metadata["threshold"])


def doubtful(images: Float32Array, backend: Backend) -> BoolArray:
    """Tell which images (n, 29, 29) in [-1, 1] of MNIST's format probably show no digit, (n,).

    It costs a pass through a network of 81,000 weights for each image, where net1 has 1.3 million.
    """
    judge = network()
    found = outputs(judge.network, judge.pixels.to_inputs(images), backend)
    result: BoolArray = found[:, 1] < threshold()
    return result
