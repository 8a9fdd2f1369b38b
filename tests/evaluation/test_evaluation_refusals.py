"""Each refusal of the package is one line that says what was expected."""

import math

import numpy as np
import pytest

from mlpcore import Committee, InputError, Network, backends
from mlpcore.evaluation import Copies, Evaluation, evaluate

LABELS, ZEROS = np.array([0, 1]), np.zeros((2, 3))


def committee(*sizes):
    return lambda: Committee([Network(each, 0) for each in sizes])


def images(shape, dtype=np.float32):
    network, backend = Network((35, 3)), backends.get("scalar")
    return lambda: evaluate(network, np.zeros(shape, dtype), LABELS, backend)


REFUSED = [
    (lambda: Copies(0), "copies 0: expected .* 1 to"),
    (lambda: Copies(8, 0), "strength 0: expected more than 0, at most 5"),
    (lambda: Copies(8, math.nan), "strength nan: expected more than 0"),
    (lambda: Copies(8, 0.5, -1), "seed -1: expected"),
    (lambda: Evaluation.of(ZEROS[:, :, None], LABELS), r"^outputs: .* \(2, 3, 1\), expected"),
    (lambda: Evaluation.of(ZEROS[:, :1], LABELS), "^outputs: .*2 or more classes"),
    (lambda: Evaluation.of(ZEROS[:0], LABELS), "^outputs: .*1 or more samples"),
    (lambda: Evaluation.of(ZEROS.astype(int), LABELS), "^outputs: int64 .*expected real"),
    (lambda: Evaluation.of(ZEROS, np.arange(3)), r"^labels: .*\(3,\), expected"),
    (lambda: Evaluation.of(ZEROS, LABELS / 1), "^labels: float64 .*expected whole"),
    (lambda: Evaluation.of(ZEROS, 3 * LABELS), "^labels: from 0 to 3, expected 0 to 2"),
    (lambda: Evaluation.of(ZEROS, -LABELS), "^labels: from -1 to 0, expected"),
    (lambda: Evaluation.of(ZEROS / 0, LABELS), "^outputs: expected finite"),
    (committee(), "^a committee of no networks: expected"),
    (committee((35, 9, 3), (35, 3), (35, 9, 4)), "^network 3 of a committee is 35-9-4: expected"),
    (committee((35, 9, 3), (36, 9, 3)), "^network 2 .*expected 35 inputs"),
    (images((2, 6, 5)), r"^images: .*\(2, 30\), expected"),
    (images((2, 7, 5), np.float64), "^images: float64"),
]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
