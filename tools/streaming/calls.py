"""What a call with one sample costs, ours and others'."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from river import linear_model, tree
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from mlpcore import OnlineMLPClassifier, StreamMLPClassifier, dataset
from mlpcore.typing import AnyArray

#: A call with one sample: (n_inputs,) numbers, the same by name, and its class.
Call: TypeAlias = Callable[[AnyArray, dict[str, float], int], object]

#: Inputs and hidden layers.
NETWORKS = {
    "10-50-2": (10, (50,)),
    "784-300-2": (784, (300,)),
    "841-1000-500-2": (841, (1000, 500)),
}

#: Calls of one kind in a row, so that its weights are in the caches, as they are in a stream.
TURN = 50


def samples(n_inputs: int, n: int) -> tuple[AnyArray, AnyArray]:
    """Digits in [0, 1], odd or even, for the network that takes them; else random numbers."""
    rng = np.random.default_rng(0)
    if n_inputs != 841:
        return rng.random((n, n_inputs)), rng.integers(0, 2, n)
    data = dataset.load(name="digits")
    chosen = rng.integers(0, len(data.train_images), n)
    X = (data.train_images[chosen].reshape(n, n_inputs).astype(np.float64) + 1) / 2
    return X, data.train_labels[chosen] % 2


def pytorch(n_inputs: int, hidden: tuple[int, ...]) -> dict[str, Call]:
    """A step of SGD, and a forward pass."""
    torch.set_num_threads(1)
    sizes = (n_inputs, *hidden, 2)
    layers: list[Any] = []
    for n_in, n_out in pairwise(sizes):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimiser, loss = torch.optim.SGD(model.parameters(), 0.01), torch.nn.CrossEntropyLoss()

    def learn(x: AnyArray, named: object, y: int) -> None:
        optimiser.zero_grad()
        loss(model(torch.from_numpy(x[None]).float()), torch.tensor([y])).backward()
        optimiser.step()

    def predict(x: AnyArray, named: object, y: int) -> int:
        with torch.inference_mode():
            return int(model(torch.from_numpy(x[None]).float()).argmax())

    return {"PyTorch, SGD step": learn, "PyTorch, forward": predict}


def partial(name: str, model: Any) -> dict[str, Call]:
    """`partial_fit` and `predict` of an estimator."""
    classes = np.arange(2)
    return {
        f"{name}.partial_fit": lambda x, named, y: model.partial_fit(x[None], [y], classes=classes),
        f"{name}.predict": lambda x, named, y: model.predict(x[None]),
    }


def stream(name: str, model: Any, named: bool) -> dict[str, Call]:
    """`learn_one` and `predict_one` of a learner of streams."""
    how = "a dictionary" if named else "an array"
    return {
        f"{name}.learn_one, {how}": lambda x, names, y: model.learn_one(names if named else x, y),
        f"{name}.predict_one, {how}": lambda x, names, y: model.predict_one(names if named else x),
    }


def calls_of(n_inputs: int, hidden: tuple[int, ...]) -> dict[str, Call]:
    """All calls for networks of these sizes. Those of one learner follow each other."""
    return {
        **stream("StreamMLPClassifier", StreamMLPClassifier(hidden), True),
        **stream("StreamMLPClassifier", StreamMLPClassifier(hidden), False),
        **partial("OnlineMLPClassifier", OnlineMLPClassifier(hidden, threads=1)),
        **pytorch(n_inputs, hidden),
        **partial("MLPClassifier", MLPClassifier(hidden)),
        **partial("SGDClassifier", SGDClassifier(loss="log_loss")),
        **stream("River, LogisticRegression", linear_model.LogisticRegression(), True),
        **stream("River, HoeffdingTree", tree.HoeffdingTreeClassifier(), True),
    }


def microseconds(network: str, n: int) -> dict[str, float]:
    """The median time of n calls of each kind, which take turns."""
    n_inputs, hidden = NETWORKS[network]
    X, y = samples(n_inputs, n)
    names = [f"input {k}" for k in range(n_inputs)]
    rows = [(x, dict(zip(names, x.tolist())), int(label)) for x, label in zip(X, y)]
    calls = calls_of(n_inputs, hidden)
    times: dict[str, list[float]] = {name: [] for name in calls}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for first in range(0, n, TURN):
            for name, call in calls.items():
                for row in rows[first : first + TURN]:
                    began = time.perf_counter()
                    call(*row)
                    times[name].append(time.perf_counter() - began)
    return {name: round(1e6 * float(np.median(each)), 1) for name, each in times.items()}


def table(medians: dict[str, dict[str, float]]) -> str:
    """Microseconds a call, as Markdown."""
    rows = [
        [name, *(f"{own[name]:,.0f}" if own[name] >= 20 else own[name] for own in medians.values())]
        for name in next(iter(medians.values()))
    ]
    aligned = ("left", *("right" for _ in medians))
    headers = ["call", *medians]
    return tabulate(rows, headers, tablefmt="pipe", colalign=aligned, disable_numparse=True)
