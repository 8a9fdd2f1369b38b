"""OnlineMLPClassifier beside scikit-learn's MLPClassifier, both as they are by default.

Prints a table in Markdown: accuracy, log loss and seconds of a fit, by five-fold cross-validation
with three seeds, on scikit-learn's small data sets, scaled. A second table has the recall and the
precision of a class of which one in 51 samples is, with and without balanced weights.
"""

from __future__ import annotations

import argparse
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
from sklearn.metrics import accuracy_score, log_loss, precision_score, recall_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from mlpcore import OnlineMLPClassifier
from mlpcore.report.tables import markdown_table
from mlpcore.typing import AnyArray

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
CLASSIFIERS = (OnlineMLPClassifier, MLPClassifier)


def cross_validated(kind: Any, X: AnyArray, y: AnyArray, seeds: int, balanced: bool) -> AnyArray:
    """Means over folds and seeds: accuracy, log loss, seconds of a fit, recall, precision.

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
            probabilities = mlp.predict_proba(scaler.transform(X[test])).astype(np.float64)
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            guesses = mlp.classes_[probabilities.argmax(axis=1)]
            one = {"labels": [1], "average": "macro", "zero_division": 0}
            found.append(
                (
                    accuracy_score(y[test], guesses),
                    log_loss(y[test], probabilities, labels=mlp.classes_),
                    seconds,
                    recall_score(y[test], guesses, **one),
                    precision_score(y[test], guesses, **one),
                )
            )
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="0 ... N - 1 (%(default)s)"
    )
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore", ConvergenceWarning)  # of MLPClassifier
    rows = [
        ("data", "accuracy", "MLPClassifier", "log loss", "MLPClassifier", "fit", "MLPClassifier")
    ]
    for name, load in DATA.items():
        ours, theirs = (
            cross_validated(kind, *load(return_X_y=True), seeds, False) for kind in CLASSIFIERS
        )
        cells = [f"{value:.2%}" for value in (ours[0], theirs[0])]
        cells += [f"{value:.3f}" for value in (ours[1], theirs[1])]
        rows.append((name, *cells, *(f"{value:.2f} s" for value in (ours[2], theirs[2]))))
    print(markdown_table(rows), end="\n\n")
    X, y = make_classification(5100, n_informative=6, weights=[50 / 51], random_state=0)
    rows = [("weights", "recall", "MLPClassifier", "precision", "MLPClassifier")]
    for balanced in (False, True):
        ours, theirs = (cross_validated(kind, X, y, seeds, balanced) for kind in CLASSIFIERS)
        values = (ours[3], theirs[3], ours[4], theirs[4])
        rows.append(("balanced" if balanced else "none", *(f"{value:.2f}" for value in values)))
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
