"""Evaluations of several networks on the same samples, compared."""

from collections.abc import Sequence

import numpy as np

from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.typing import AnyArray


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
