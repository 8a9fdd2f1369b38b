"""How many samples of a stream are predicted right, each before it is learnt."""

from __future__ import annotations

import statistics
from itertools import product
from typing import Any, TypeAlias

import joblib
import numpy as np
from river import evaluate, metrics
from tabulate import tabulate

from streaming import WINDOW
from streaming.learners import LEARNERS, STREAMS, samples_of

#: Accuracies by stream and learner, one of each seed.
Accuracies: TypeAlias = dict[str, dict[str, list[float]]]

#: The stream of which there is a curve over time.
CURVE = "Agrawal, drift"


def follow(stream: str, learner: str, seed: int, n: int) -> tuple[float, list[bool]]:
    """The accuracy of a learner on a stream, and which samples it predicts right."""
    samples = samples_of(stream, seed, n)
    model = LEARNERS[learner](seed, sorted({y for _, y in samples}))
    metric = metrics.Accuracy()  # which leaves out a sample of which there is no prediction
    steps = evaluate.iter_progressive_val_score(samples, model, metric, yield_predictions=True)
    hits = [step["Prediction"] == y for step, (_, y) in zip(steps, samples)]
    return round(metric.get(), 4), hits


def curve(hits: list[bool]) -> list[float]:
    """The accuracy in each window."""
    return [round(float(each), 4) for each in np.reshape(hits, (-1, WINDOW)).mean(axis=1)]


def measure(n: int, seeds: int, jobs: int) -> dict[str, Any]:
    """Accuracies by stream and learner, and curves by learner, of all seeds from 1 on."""
    tasks = list(product(STREAMS, LEARNERS, range(1, seeds + 1)))
    run = joblib.Parallel(jobs, batch_size=1)
    found = run(joblib.delayed(follow)(*task, n) for task in tasks)
    accuracies: Accuracies = {stream: {name: [] for name in LEARNERS} for stream in STREAMS}
    curves: dict[str, list[list[float]]] = {name: [] for name in LEARNERS}
    for (stream, learner, _), (right, hits) in zip(tasks, found):
        accuracies[stream][learner].append(right)
        if stream == CURVE:
            curves[learner].append(curve(hits))
    return {"accuracy": accuracies, "curves": curves}


def table(accuracies: Accuracies) -> str:
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
