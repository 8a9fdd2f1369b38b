"""Measures how well learners follow streams that drift; see `--help`. It needs River."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np
from river import (
    compat,
    datasets,
    evaluate,
    forest,
    linear_model,
    metrics,
    naive_bayes,
    neighbors,
    preprocessing,
    tree,
)
from river.datasets import synth
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from tabulate import tabulate

from mlpcore import StreamMLPClassifier
from mlpcore.store.provenance import machine

Samples: TypeAlias = list[tuple[dict[Any, float], Any]]


def drifting(before: Any, after: Any, seed: int, n: int) -> Any:
    """A stream that turns into another one in the middle of its n samples, within 500 of them."""
    return synth.ConceptDriftStream(before, after, seed=seed, position=n // 2, width=500)


def shuffled(samples: Iterable[Any], seed: int) -> Iterator[Any]:
    """All samples of a data set in a random order."""
    listed = list(samples)
    return (listed[i] for i in np.random.default_rng(seed).permutation(len(listed)))


def sea(seed: int, n: int) -> Any:
    before, after = (synth.SEA(variant=each, seed=seed, noise=0.1) for each in (0, 3))
    return drifting(before, after, seed, n)


def agrawal(seed: int, n: int) -> Any:
    before, after = (synth.Agrawal(classification_function=each, seed=seed) for each in (0, 4))
    return drifting(before, after, seed, n)


def rbf(seed: int, n: int) -> Any:
    sizes = {"n_classes": 4, "n_features": 10, "n_centroids": 20, "n_drift_centroids": 10}
    return synth.RandomRBFDrift(seed_model=seed, seed_sample=seed, change_speed=1e-3, **sizes)


STREAMS: dict[str, Callable[[int, int], Iterable[Any]]] = {
    "SEA, drift": sea,
    "Agrawal, drift": agrawal,
    "random RBF, drift": rbf,
    "hyperplane, drift": lambda seed, n: synth.Hyperplane(
        seed=seed, n_features=10, n_drift_features=5, mag_change=1e-3
    ),
    "LED, drift": lambda seed, n: synth.LEDDrift(
        seed=seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=4
    ),
    "Phishing": lambda seed, n: shuffled(datasets.Phishing(), seed),
    "ImageSegments": lambda seed, n: shuffled(datasets.ImageSegments(), seed),
}


def scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


def of_sklearn(model: Any, classes: list[Any]) -> Any:
    return scaled(compat.convert_sklearn_to_river(model, classes))


OURS = "StreamMLPClassifier"

LEARNERS: dict[str, Callable[[int, list[Any]], Any]] = {
    OURS: lambda seed, classes: StreamMLPClassifier(seed=seed),
    "softmax regression": lambda seed, classes: scaled(linear_model.SoftmaxRegression()),
    "Gaussian naive Bayes": lambda seed, classes: naive_bayes.GaussianNB(),
    "Hoeffding tree": lambda seed, classes: tree.HoeffdingTreeClassifier(),
    "adaptive Hoeffding tree": lambda seed, classes: tree.HoeffdingAdaptiveTreeClassifier(
        seed=seed
    ),
    "adaptive random forest": lambda seed, classes: forest.ARFClassifier(seed=seed),
    "nearest neighbours": lambda seed, classes: scaled(neighbors.KNNClassifier()),
    "SGDClassifier": lambda seed, classes: of_sklearn(
        SGDClassifier(loss="log_loss", random_state=seed), classes
    ),
    "MLPClassifier": lambda seed, classes: of_sklearn(
        MLPClassifier((50,), random_state=seed), classes
    ),
}


def samples_of(stream: str, seed: int, n: int) -> Samples:
    samples = [x for _, x in zip(range(n), STREAMS[stream](seed, n))]
    return [({name: float(value) for name, value in x.items()}, y) for x, y in samples]


def accuracy(stream: str, learner: str, seed: int, n: int) -> float:
    """The share of samples whose label a learner predicts before it learns them."""
    samples = samples_of(stream, seed, n)
    model = LEARNERS[learner](seed, sorted({y for _, y in samples}))
    return float(evaluate.progressive_val_score(samples, model, metrics.Accuracy()).get())


def table(accuracies: dict[str, dict[str, list[float]]]) -> str:
    """Means over the seeds, in percent, as Markdown; the two best of each column are bold."""
    means = {s: {k: statistics.mean(v) for k, v in row.items()} for s, row in accuracies.items()}
    means["mean"] = {k: statistics.mean(row[k] for row in means.values()) for k in LEARNERS}
    rows = []
    for learner in LEARNERS:
        cells = []
        for row in means.values():
            text = f"{100 * row[learner]:.1f}"
            cells.append(f"**{text}**" if row[learner] in sorted(row.values())[-2:] else text)
        rows.append([learner, *cells])
    headers = ["learner", *means]
    aligned = ("left", *("right" for _ in means))
    return tabulate(rows, headers, tablefmt="pipe", colalign=aligned, disable_numparse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000, help="of a stream at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="processes")
    parser.add_argument("output", type=Path, help="a JSON file; what it has is not done again")
    args = parser.parse_args()
    how = f"tools/streams.py --samples {args.samples} --seeds {args.seeds}"
    accuracies: dict[str, dict[str, list[float]]] = {s: {k: [] for k in LEARNERS} for s in STREAMS}
    if args.output.exists():
        accuracies = json.loads(args.output.read_text())["accuracy"]
    tasks = [
        (stream, learner, seed, args.samples)
        for seed in range(1, args.seeds + 1)
        for learner in LEARNERS
        for stream in STREAMS
        if len(accuracies[stream][learner]) < seed
    ]
    run = joblib.Parallel(args.jobs, return_as="generator", batch_size=1)
    for task, result in zip(tasks, run(joblib.delayed(accuracy)(*task) for task in tasks)):
        accuracies[task[0]][task[1]].append(round(result, 4))
        record = {"how": how, "machine": machine(), "accuracy": accuracies}
        args.output.write_text(json.dumps(record, indent=1) + "\n")
    print(table(accuracies))


if __name__ == "__main__":
    main()
