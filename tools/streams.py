"""Measures learners of streams, ours and others': their accuracy, and the time of a call.

It prints the tables of docs/streams.md, and needs River.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

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
    tree,
)
from river.datasets import synth
from river.preprocessing import StandardScaler
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from mlpcore import OnlineMLPClassifier, StreamMLPClassifier, dataset

#: Inputs and hidden layers of the networks whose calls are timed.
NETWORKS = {
    "10-50-2": (10, (50,)),
    "784-300-2": (784, (300,)),
    "841-1000-500-2": (841, (1000, 500)),
}

#: Calls of one kind in a row, so that its weights are in the caches, as they are in a stream.
TURN = 50


def drifting(generator: Any, first: int, second: int, seed: int, n: int, **more: Any) -> Any:
    """A stream of one variant that turns into another in the middle, within 500 samples."""
    before, after = (generator(variant, seed=seed, **more) for variant in (first, second))
    return synth.ConceptDriftStream(before, after, seed=seed, position=n // 2, width=500)


def shuffled(data: Any, seed: int) -> Any:
    """All samples of a data set in a random order."""
    samples = list(data)
    return (samples[i] for i in np.random.default_rng(seed).permutation(len(samples)))


STREAMS: dict[str, Callable[[int, int], Any]] = {
    "SEA, drift": lambda seed, n: drifting(synth.SEA, 0, 3, seed, n, noise=0.1),
    "Agrawal, drift": lambda seed, n: drifting(synth.Agrawal, 0, 4, seed, n),
    "random RBF, drift": lambda seed, n: synth.RandomRBFDrift(seed, seed, 4, 10, 20, 1e-3, 10),
    "hyperplane, drift": lambda seed, n: synth.Hyperplane(seed, 10, 5, 1e-3),
    "LED, drift": lambda seed, n: synth.LEDDrift(seed, 0.1, True, 4),
    "Phishing": lambda seed, n: shuffled(datasets.Phishing(), seed),
    "ImageSegments": lambda seed, n: shuffled(datasets.ImageSegments(), seed),
}


def learners(seed: int, classes: list[Any]) -> dict[str, Any]:
    """Those of the table. They have their defaults, on scaled numbers where that is usual."""
    sgd = SGDClassifier(loss="log_loss", random_state=seed)
    mlp = MLPClassifier((50,), random_state=seed)
    return {
        "StreamMLPClassifier": StreamMLPClassifier(seed=seed),
        "softmax regression": StandardScaler() | linear_model.SoftmaxRegression(),
        "Gaussian naive Bayes": naive_bayes.GaussianNB(),
        "Hoeffding tree": tree.HoeffdingTreeClassifier(),
        "adaptive Hoeffding tree": tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
        "adaptive random forest": forest.ARFClassifier(seed=seed),
        "nearest neighbours": StandardScaler() | neighbors.KNNClassifier(),
        "SGDClassifier": StandardScaler() | compat.convert_sklearn_to_river(sgd, classes),
        "MLPClassifier": StandardScaler() | compat.convert_sklearn_to_river(mlp, classes),
    }


def accuracy(learner: str, stream: str, seed: int, n: int) -> float:
    """The percentage of up to n samples whose label is predicted right before it is learnt."""
    samples = [
        ({name: float(value) for name, value in x.items()}, y)
        for _, (x, y) in zip(range(n), STREAMS[stream](seed, n))
    ]
    model = learners(seed, sorted({y for _, y in samples}))[learner]
    return 100 * float(evaluate.progressive_val_score(samples, model, metrics.Accuracy()).get())


def calls(n_inputs: int, hidden: tuple[int, ...]) -> dict[str, Callable[..., object]]:
    """Calls with a sample as an array, the same by name, and its class."""
    result: dict[str, Callable[..., object]] = {}
    for name, model in {
        "StreamMLPClassifier": StreamMLPClassifier(hidden),
        "River, LogisticRegression": linear_model.LogisticRegression(),
        "River, HoeffdingTree": tree.HoeffdingTreeClassifier(),
    }.items():
        result[f"{name}.learn_one"] = lambda x, named, y, each=model: each.learn_one(named, y)
        result[f"{name}.predict_one"] = lambda x, named, y, each=model: each.predict_one(named)
    ours = OnlineMLPClassifier(hidden, threads=1)
    for model in (ours, MLPClassifier(hidden), SGDClassifier(loss="log_loss")):
        each = model.partial_fit(np.eye(2, n_inputs), [0, 1], classes=[0, 1])
        name = type(model).__name__
        result[f"{name}.partial_fit"] = lambda x, _, y, each=each: each.partial_fit(x[None], [y])
        result[f"{name}.predict"] = lambda x, _, y, each=each: each.predict(x[None])
    return result


def microseconds(network: str, n: int) -> dict[str, float]:
    """The median time of n calls of each kind, which take turns."""
    n_inputs, hidden = NETWORKS[network]
    rng = np.random.default_rng(0)
    X, y = rng.random((n, n_inputs)), rng.integers(0, 2, n)
    if n_inputs == 841:
        data = dataset.load(name="digits")
        chosen = rng.integers(0, len(data.train_images), n)
        X = (data.train_images[chosen].reshape(n, n_inputs).astype(np.float64) + 1) / 2
        y = data.train_labels[chosen].astype(int) % 2
    names = [f"input {k}" for k in range(n_inputs)]
    rows = [(x, dict(zip(names, x.tolist())), int(label)) for x, label in zip(X, y)]
    timed = calls(n_inputs, hidden)
    times: dict[str, list[float]] = {name: [] for name in timed}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLPClassifier has not converged
        for first, (name, call) in product(range(0, n, TURN), timed.items()):
            for row in rows[first : first + TURN]:
                began = time.perf_counter()
                call(*row)
                times[name].append(time.perf_counter() - began)
    return {name: 1e6 * float(np.median(each)) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000, help="of a stream at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2000, help="of each kind")
    args = parser.parse_args()
    tasks = list(product(learners(0, []), STREAMS, range(1, args.seeds + 1)))
    follow = joblib.delayed(accuracy)
    found = joblib.Parallel(-1, batch_size=1)(follow(*task, args.samples) for task in tasks)
    means = np.reshape(found, (-1, len(STREAMS), args.seeds)).mean(axis=2)
    rows = [[name, *own, own.mean()] for name, own in zip(learners(0, []), means)]
    headers = ["learner", *STREAMS, "mean"]
    print(tabulate(rows, headers, tablefmt="pipe", floatfmt=".1f"), end="\n\n")
    times = [microseconds(network, args.calls) for network in NETWORKS]
    rows = [[name, *(own[name] for own in times)] for name in times[0]]
    print(tabulate(rows, ["call", *NETWORKS], tablefmt="pipe", floatfmt=",.1f"))


if __name__ == "__main__":
    main()
