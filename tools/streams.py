"""Measures learners of streams, ours and others': how right they are, and the time of a call.

It prints the tables of docs/measurements.md and draws the figures of docs/streams.md, and needs
River; with PyTorch, it times that, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from river import (
    compat,
    compose,
    datasets,
    forest,
    linear_model,
    metrics,
    multiclass,
    naive_bayes,
    tree,
)
from river.datasets import synth
from river.preprocessing import StandardScaler, TargetStandardScaler
from sklearn.neural_network import MLPClassifier
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from mlpcore import OnlineMLPClassifier, StreamMLPClassifier, StreamMLPRegressor

try:
    import torch
except ImportError:
    torch = None

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


def words(seed: int, n: int) -> Iterator[tuple[dict[int, float], int]]:
    """Texts of some ten of 2,000 words, {word: 1}, on twenty topics; others from the middle on."""
    rng, shares = np.random.default_rng(seed), 1 / np.arange(1, 2001)
    for k in range(n):
        if k in (0, n // 2):  # of the words, three in ten are as frequent in all topics
            common, orders = np.arange(2000), [rng.permutation(2000) for _ in range(20)]
            topics = [shares[np.where(rng.random(2000) < 0.3, common, each)] for each in orders]
        topic = int(rng.integers(20))
        share = topics[topic] / topics[topic].sum()
        text = rng.choice(2000, 2 + rng.poisson(8), p=share)
        yield dict.fromkeys(text.tolist(), 1.0), topic


STREAMS: dict[str, Callable[[int, int], Any]] = {
    "SEA, drift": lambda seed, n: drifting(synth.SEA, 0, 3, seed, n, noise=0.1),
    "Agrawal, drift": lambda seed, n: drifting(synth.Agrawal, 0, 4, seed, n),
    "random RBF, drift": lambda seed, n: synth.RandomRBFDrift(seed, seed, 4, 10, 20, 1e-3, 10),
    "hyperplane, drift": lambda seed, n: synth.Hyperplane(seed, 10, 5, 1e-3),
    "LED, drift": lambda seed, n: synth.LEDDrift(seed, 0.1, True, 4),
    "Waveform": lambda seed, n: synth.Waveform(seed, has_noise=True),
    "Phishing": lambda seed, n: shuffled(datasets.Phishing(), seed),
    "ImageSegments": lambda seed, n: shuffled(datasets.ImageSegments(), seed),
    "words, drift": words,
}

#: Streams of numbers.
NUMBERS: dict[str, Callable[[int, int], Any]] = {
    "Friedman, drift": lambda seed, n: synth.FriedmanDrift(
        "lea", (n // 4, n // 2, 3 * n // 4), seed=seed
    ),
    "planes": lambda seed, n: synth.Planes2D(seed),
    "TrumpApproval": lambda seed, n: datasets.TrumpApproval(),
    "ChickWeights": lambda seed, n: datasets.ChickWeights(),
}


def with_intercept(x: dict[Any, float]) -> dict[Any, float]:
    return x | {"intercept": 1.0}


def learners(stream: str, seed: int, classes: list[Any]) -> dict[str, Any]:
    """Those of a table. They have their defaults, on scaled numbers where that is usual."""
    if stream in NUMBERS:
        linear = TargetStandardScaler(linear_model.LinearRegression())
        return {
            "StreamMLPRegressor": StreamMLPRegressor(seed=seed),
            "linear regression": StandardScaler() | linear,
            "Hoeffding tree": tree.HoeffdingTreeRegressor(),
            "adaptive random forest": forest.ARFRegressor(seed=seed),
        }
    mlp = compat.convert_sklearn_to_river(MLPClassifier((50,), random_state=seed), classes)
    logistic = linear_model.LogisticRegression()
    if len(classes) > 2:
        logistic = multiclass.OneVsRestClassifier(logistic)
    softmax = compose.FuncTransformer(with_intercept) | linear_model.SoftmaxRegression()
    sparse = stream == "words, drift"
    return {
        "StreamMLPClassifier": StreamMLPClassifier(seed=seed),
        "logistic regression": logistic if sparse else StandardScaler() | logistic,
        "softmax regression": softmax if sparse else StandardScaler() | softmax,
        "naive Bayes": naive_bayes.MultinomialNB() if sparse else naive_bayes.GaussianNB(),
        "adaptive Hoeffding tree": tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
        "adaptive random forest": forest.ARFClassifier(seed=seed),
        "MLPClassifier": StandardScaler() | mlp,
    }


def follow(learner: str, stream: str, seed: int, n: int) -> list[tuple[Any, Any]]:
    """The answers of up to n samples and those predicted, each before it is learnt."""
    samples = [
        ({name: value for name, value in x.items() if not isinstance(value, str)}, y)
        for _, (x, y) in zip(range(n), (STREAMS | NUMBERS)[stream](seed, n))
    ]
    model = learners(stream, seed, sorted({y for _, y in samples}))[learner]
    found = []
    for x, y in samples:
        found.append((y, model.predict_one(x)))
        model.learn_one(x, y)
    return found


def score(stream: str, found: list[tuple[Any, Any]]) -> float:
    """The percentage that is right, or R^2."""
    if stream not in NUMBERS:
        return 100 * float(np.mean([y == predicted for y, predicted in found]))
    result = metrics.R2()
    for pair in found:
        result.update(*pair)
    return float(result.get())


def draw_drift(found: dict[str, list[Any]], path: Path, window: int = 250) -> None:
    """Accuracy over time: the mean over seeds."""
    figure, axes = plt.subplots(figsize=(7, 3.4))
    for learner, runs in found.items():
        right = np.mean([[y == predicted for y, predicted in run] for run in runs], axis=0)
        shares = right[: len(right) // window * window].reshape(-1, window).mean(axis=1)
        axes.plot(window * np.arange(1, len(shares) + 1), 100 * shares, label=learner)
    axes.set(xlabel="samples", ylabel=f"accuracy over {window} samples (%)")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(path, bbox_inches="tight")


def draw_calls(times: dict[str, dict[str, float]], path: Path) -> None:
    """Times of calls: a group of bars for each network."""
    figure, axes = plt.subplots(figsize=(7, 3.4))
    width = 0.8 / len(times["10-50-2"])
    for place, call in enumerate(times["10-50-2"]):
        found = [own[call] for own in times.values()]
        axes.bar(np.arange(len(found)) + place * width, found, width, label=call)
    axes.set(yscale="log", ylabel="microseconds a call")
    axes.set_xticks(np.arange(len(times)) + 0.4 - width / 2, [*times])
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(path, bbox_inches="tight")


def calls(n_inputs: int, hidden: tuple[int, ...]) -> dict[str, Callable[..., object]]:
    """Calls with a sample as an array, the same by name, and its class."""
    result: dict[str, Callable[..., object]] = {}
    for model in (StreamMLPClassifier(hidden), StreamMLPRegressor(hidden)):
        name = type(model).__name__
        result[f"{name}.learn_one"] = lambda x, named, y, each=model: each.learn_one(named, y)
        result[f"{name}.predict_one"] = lambda x, named, y, each=model: each.predict_one(named)
    mlp = OnlineMLPClassifier(hidden, threads=1).partial_fit(np.eye(2, n_inputs), [0, 1], [0, 1])
    result["OnlineMLPClassifier.partial_fit"] = lambda x, _, y: mlp.partial_fit(x[None], [y])
    result["OnlineMLPClassifier.predict"] = lambda x, _, y: mlp.predict(x[None])
    if torch is not None:
        add_torch(result, [n_inputs, *hidden, 2])
    return result


def add_torch(result: dict[str, Callable[..., object]], sizes: list[int]) -> None:
    """Add PyTorch's step and forward pass on one thread."""
    torch.set_num_threads(1)
    layers: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(model.parameters(), 0.03)

    def learn(x: Any, _: Any, y: int) -> None:
        optimizer.zero_grad()
        outputs = model(torch.from_numpy(x).float()[None])
        torch.nn.functional.cross_entropy(outputs, torch.tensor([y])).backward()
        optimizer.step()

    def predict(x: Any, _: Any, y: int) -> None:
        with torch.no_grad():
            model(torch.from_numpy(x).float()[None])

    result["PyTorch, SGD step"], result["PyTorch, predict"] = learn, predict


def microseconds(network: str, n: int) -> dict[str, float]:
    """The median time of n calls of each kind, which take turns."""
    n_inputs, hidden = NETWORKS[network]
    rng = np.random.default_rng(0)
    X, y = rng.random((n, n_inputs)), rng.integers(0, 2, n)
    names = [f"input {k}" for k in range(n_inputs)]
    rows = [(x, dict(zip(names, x.tolist())), int(label)) for x, label in zip(X, y)]
    timed = calls(n_inputs, hidden)
    times: dict[str, list[float]] = {name: [] for name in timed}
    with threadpool_limits(1):
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
    parser.add_argument("--only", nargs="+", default=[""], help="parts of learners' names")
    parser.add_argument("--figures", type=Path, help="a folder for the figures")
    args = parser.parse_args()
    run = joblib.delayed(follow)
    for streams in (STREAMS, NUMBERS):
        known = learners(next(iter(streams)), 0, [])
        names = [name for name in known if any(part in name for part in args.only)]
        tasks = list(product(names, streams, range(1, args.seeds + 1)))
        results = joblib.Parallel(-1, batch_size=1)(run(*task, args.samples) for task in tasks)
        runs = {
            name: {
                stream: [one for task, one in zip(tasks, results) if task[:2] == (name, stream)]
                for stream in streams
            }
            for name in names
        }
        rows = []
        for name, own in runs.items():
            scores = [np.mean([score(stream, one) for one in own[stream]]) for stream in streams]
            rows.append([name, *scores, np.mean(scores)])
        floats = ".1f" if streams is STREAMS else ".3f"
        headers = ["learner", *streams, "mean"]
        print(tabulate(rows, headers, tablefmt="pipe", floatfmt=floats), end="\n\n")
        if args.figures and streams is STREAMS:
            own = {name: runs[name]["Agrawal, drift"] for name in names}
            draw_drift(own, args.figures / "stream-drift.svg")
    if not args.calls:
        return
    times = {network: microseconds(network, args.calls) for network in NETWORKS}
    if args.figures:
        draw_calls(times, args.figures / "stream-calls.svg")
    rows = [[name, *(own[name] for own in times.values())] for name in times["10-50-2"]]
    print(tabulate(rows, ["call", *NETWORKS], tablefmt="pipe", floatfmt=",.1f"))


if __name__ == "__main__":
    main()
