"""On-line training with NumPy, and with scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from mlpcore.typing import Float32Array, Int32Array
from speed.peers.base import PaperTrainer, targets
from speed.problem import Parameters, Problem, Variant


class NumpyTrainer(PaperTrainer):
    """Matrix-vector products and outer products of NumPy, in place where NumPy can."""

    def set_up(self, problem: Problem) -> None:
        self.images, self.labels = problem.flat_images, problem.labels
        self.targets = targets(problem)
        self.weights = [np.ascontiguousarray(w) for w in problem.network.weights]
        self.biases = [b.copy() for b in problem.network.biases]
        self.products = [np.empty_like(w) for w in self.weights]

    def train(self, order: Int32Array) -> None:
        with threadpool_limits(self.threads, "blas"):
            for i in order:
                self.step(self.images[i], self.targets[self.labels[i]])

    def step(self, x: Float32Array, target: Float32Array) -> None:
        a, b = np.float32(self.variant.amplitude), np.float32(self.variant.slope)
        states = [x]
        for w, bias in zip(self.weights, self.biases):
            states.append(a * np.tanh(b * (w @ states[-1] + bias)))
        error = states[-1] - target
        for layer in range(self.n_layers - 1, -1, -1):
            y = states[layer + 1]
            delta = error * (b / a * (a - y) * (a + y))
            if layer:
                error = delta @ self.weights[layer]
            delta *= np.float32(self.rate)
            np.multiply.outer(delta, states[layer], out=self.products[layer])
            self.weights[layer] -= self.products[layer]
            self.biases[layer] -= delta

    def parameters(self) -> Parameters:
        return list(zip(self.weights, self.biases))


class SklearnTrainer(PaperTrainer):
    """MLPClassifier.partial_fit with one sample at a time.

    tanh without factors, and a softmax with cross-entropy: it has no other loss.
    """

    variant = Variant(amplitude=1.0, slope=1.0, softmax=True)

    def set_up(self, problem: Problem) -> None:
        from sklearn.neural_network import MLPClassifier

        self.images, self.labels = problem.flat_images, problem.labels
        self.model = MLPClassifier(
            problem.hidden,
            activation="tanh",
            solver="sgd",
            alpha=0.0,
            batch_size=1,
            learning_rate_init=problem.rate,
            momentum=0.0,
            nesterovs_momentum=False,
            shuffle=False,
        )
        classes = np.arange(problem.layer_sizes[-1])
        self.model.partial_fit(self.images[:1], self.labels[:1], classes=classes)
        network = problem.network
        for i in range(network.n_layers):
            self.model.coefs_[i][...] = network.weights[i].T
            self.model.intercepts_[i][...] = network.biases[i]

    def train(self, order: Int32Array) -> None:
        with threadpool_limits(self.threads, "blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in order:
                self.model.partial_fit(self.images[i : i + 1], self.labels[i : i + 1])

    def parameters(self) -> Parameters:
        return [(w.T, b) for w, b in zip(self.model.coefs_, self.model.intercepts_)]
