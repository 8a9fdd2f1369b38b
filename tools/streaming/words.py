"""Learning from many rare features: hashed words in a sparse matrix, ours and others'."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from mlpcore import OnlineMLPClassifier
from mlpcore.typing import AnyArray

WORDS, FEATURES, TOPICS, PER_ROW = 50_000, 2**18, 20, 80

#: The share of a text's words that are its topic's.
SHARE = 0.15

LEARNERS: dict[str, Callable[[], Any]] = {
    "OnlineMLPClassifier": lambda: OnlineMLPClassifier((100,), max_iter=1, threads=1),
    "MLPClassifier": lambda: MLPClassifier((100,), max_iter=1),
    "SGDClassifier": lambda: SGDClassifier(loss="log_loss", max_iter=1, tol=None),
}


def texts(n: int) -> tuple[csr_matrix, AnyArray]:
    """Rows of hashed words, (n, FEATURES) float32 with 1 for each that is there, and topics (n,).

    Words are as frequent as Zipf's law says. Each topic has an order of its own for them, from
    which some words of a text are drawn; the others are from the common order.
    """
    rng = np.random.default_rng(0)
    columns = rng.integers(0, FEATURES, WORDS, np.int32)
    orders = np.array([rng.permutation(WORDS) for _ in range(TOPICS)])
    frequency = 1 / np.arange(1, WORDS + 1)
    ranks = rng.choice(WORDS, (n, PER_ROW), p=frequency / frequency.sum())
    y = rng.integers(0, TOPICS, n)
    words = np.where(rng.random(ranks.shape) < SHARE, orders[y[:, None], ranks], ranks)
    begins = np.arange(0, n * PER_ROW + 1, PER_ROW)
    ones = np.ones(n * PER_ROW, np.float32)
    X = csr_matrix((ones, columns[words].ravel(), begins), (n, FEATURES))
    return X.sign(), y


def learn(learner: str, n: int) -> dict[str, float]:
    """Seconds and megabytes for an epoch of nine tenths of the texts; accuracy on the others."""
    X, y = texts(n)
    n_train = n - n // 10
    Path("/proc/self/clear_refs").write_text("5")  # the greatest memory from now on
    before = greatest_memory()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LEARNERS[learner]()
        began = time.perf_counter()
        model.fit(X[:n_train], y[:n_train])
        seconds = time.perf_counter() - began
    memory = greatest_memory() - before
    accuracy = float(model.score(X[n_train:], y[n_train:]))
    return {
        "seconds": round(seconds, 2),
        "megabytes": round(memory / 1024),
        "accuracy": round(accuracy, 4),
    }


def greatest_memory() -> int:
    """Kilobytes that this process had at most."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1])


def measure(learner: str, n: int) -> dict[str, float]:
    """What `learn` returns, from a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(learn, learner, n).result()


def table(found: dict[str, dict[str, float]]) -> str:
    """As Markdown."""
    rows = [
        [name, own["seconds"], f"{own['megabytes']:,.0f}", f"{100 * own['accuracy']:.1f} %"]
        for name, own in found.items()
    ]
    headers = ["learner", "seconds", "memory (MB)", "accuracy"]
    return tabulate(rows, headers, tablefmt="pipe", colalign=("left", *["right"] * 3))
