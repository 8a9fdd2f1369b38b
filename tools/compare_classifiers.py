"""OnlineMLPClassifier beside scikit-learn's MLPClassifier, both as they are by default.

Prints a table in Markdown: accuracy, log loss and seconds of a fit, by five-fold cross-validation
with three seeds, on scikit-learn's small data sets, scaled. A second table has the recall and the
precision of a class of which one in 51 samples is, with and without balanced weights.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, precision_score, recall_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from mlpcore import OnlineMLPClassifier
from mlpcore.commands.options import run_tool
from mlpcore.report.tables import Rows, markdown_table
from mlpcore.typing import AnyArray

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
CLASSIFIERS = (OnlineMLPClassifier, MLPClassifier)


def cross_validated(kind: Any, X: AnyArray, y: AnyArray, seeds: int, balanced: bool) -> AnyArray:
    """Means over folds and seeds: accuracy, log loss, seconds of a fit, recall and precision.

    Recall and precision are those of the class 1.
    """
    found = []
    for seed in range(seeds):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
            scaler = StandardScaler().fit(X[train])
            weights = compute_sample_weight("balanced", y[train]) if balanced else None
            started = time.perf_counter()
            mlp = kind(random_state=seed).fit(scaler.transform(X[train]), y[train], weights)
            seconds = time.perf_counter() - started
            outputs = mlp.predict_proba(scaler.transform(X[test])).astype(np.float64)
            outputs /= outputs.sum(axis=1, keepdims=True)  # float32 sums to 1 only about
            guesses = mlp.classes_[outputs.argmax(axis=1)]
            loss = log_loss(y[test], outputs, labels=mlp.classes_)
            one = {"labels": [1], "average": "macro", "zero_division": 0}
            recall, precision = (
                score(y[test], guesses, **one) for score in (recall_score, precision_score)
            )
            found.append((np.mean(guesses == y[test]), loss, seconds, recall, precision))
    return np.mean(found, axis=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="(%(default)s)")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore", ConvergenceWarning)  # of MLPClassifier
    theirs = "MLPClassifier"
    rows: Rows = [("data", "accuracy", theirs, "log loss", theirs, "seconds", theirs)]
    for name, load in DATA.items():
        X, y = load(return_X_y=True)
        pairs = zip(*(cross_validated(kind, X, y, seeds, False) for kind in CLASSIFIERS))
        accuracies, losses, seconds, *_ = pairs
        cells = [f"{value:.2%}" for value in accuracies] + [f"{value:.3f}" for value in losses]
        rows.append((name, *cells, *(f"{value:.2f}" for value in seconds)))
    print(markdown_table(rows), end="\n\n")
    X, y = make_classification(5100, n_informative=6, weights=[50 / 51], random_state=0)
    rows = [("weights", "recall", theirs, "precision", theirs)]
    for name in ("none", "balanced"):
        pairs = zip(*(cross_validated(kind, X, y, seeds, name != "none") for kind in CLASSIFIERS))
        *_, recalls, precisions = pairs
        rows.append((name, *(f"{value:.2f}" for value in (*recalls, *precisions))))
    print(markdown_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_tool(main))
