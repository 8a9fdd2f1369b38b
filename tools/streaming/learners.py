"""The streams, and those who learn them. It needs River."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from river import (
    compat,
    datasets,
    forest,
    linear_model,
    naive_bayes,
    neighbors,
    preprocessing,
    tree,
)
from river.datasets import synth
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from mlpcore import StreamMLPClassifier

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
