"""Mini-batches with scikit-learn's `MLPClassifier`, whose learning rate falls linearly."""

from __future__ import annotations

import time

import numpy as np
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from speed.lesson import Lesson, Trained

#: Calls of `partial_fit` in an epoch, each at a learning rate of its own.
PARTS = 10


def train_scikit(lesson: Lesson, rate: float) -> Trained:
    """Trains with Adam in batches of 200, the defaults; `rate` is that before the first sample."""
    labels, rng = lesson.data.train_labels, np.random.default_rng(lesson.seed)
    total = lesson.epochs * PARTS
    first = rate * (1 - 0.5 / total)
    model = MLPClassifier(lesson.hidden, learning_rate_init=first, random_state=lesson.seed)
    classes = np.arange(lesson.data.n_classes)
    with threadpool_limits(lesson.threads):
        begin = time.perf_counter()
        for epoch in range(lesson.epochs):
            images = lesson.deformed(epoch)
            for i, part in enumerate(np.array_split(rng.permutation(len(labels)), PARTS)):
                if epoch or i:  # the optimiser is there from the first call on
                    left = 1 - (epoch * PARTS + i + 0.5) / total
                    model._optimizer.learning_rate_init = rate * left
                model.partial_fit(images[part], labels[part], classes=classes)
        seconds = time.perf_counter() - begin
    layers = [(w.T, b) for w, b in zip(model.coefs_, model.intercepts_)]
    return Trained(lesson.network(layers), seconds)
