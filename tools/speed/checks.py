"""Whether a routine's results are the oracle's: nothing else is timed.

Each check returns the greatest relative error that it has seen, of a few samples or images,
and `problem.TOLERANCE` says what is too much.
"""

from __future__ import annotations

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.deformation.deform import deform, gaussian_taps
from speed.problem import SIDE, Problem, relative_error

#: Samples or images of a check of anything but training.
FEW = 3

#: Large enough for a change that float32 shows.
RATE = 0.1


def forward(problem: Problem, backend: Backend) -> float:
    """Of the outputs of each layer."""
    oracle, network = backends.get("reference"), problem.network
    loaded = backend.load(network)
    return max(
        relative_error(
            backend.forward(loaded, layer, problem.activity[layer][:FEW]),
            oracle.forward(network, layer, problem.activity[layer][:FEW]),
        )
        for layer in range(network.n_layers)
    )


def backward(problem: Problem, backend: Backend) -> float:
    """Of the deltas below each layer but the first."""
    oracle, network = backends.get("reference"), problem.network
    loaded = backend.load(network)
    errors = []
    for layer in range(1, network.n_layers):
        states, deltas = (level[:FEW] for level in problem.activity[layer : layer + 2])
        got = backend.backward(loaded, layer, deltas, states)
        errors.append(relative_error(got, oracle.backward(network, layer, deltas, states)))
    return max(errors)


def update(problem: Problem, backend: Backend) -> float:
    """Of the change of each layer's weights."""
    oracle, network = backends.get("reference"), problem.network
    got, want = network.copy(), network.copy()
    loaded = backend.load(got)
    errors = []
    for layer in range(network.n_layers):
        inputs, deltas = (level[:FEW] for level in problem.activity[layer : layer + 2])
        backend.update(loaded, layer, inputs, deltas, RATE)
        oracle.update(want, layer, inputs, deltas, RATE)
    backend.store(loaded, got)
    for g, w, begin in zip(got.weights, want.weights, network.weights):
        errors.append(relative_error(g, w, np.abs(w - begin).max()))
    for g, w, begin in zip(got.biases, want.biases, network.biases):
        errors.append(relative_error(g, w, np.abs(w - begin).max()))
    return max(errors)


def step(problem: Problem, backend: Backend) -> float:
    """Of the change that training on the first samples makes."""
    network = problem.network.copy()
    loaded = backend.load(network)
    images, labels = backend.put(problem.flat_images), backend.put(problem.labels)
    backend.train(loaded, images, labels, problem.order[: problem.checked], problem.rate)
    backend.store(loaded, network)
    return problem.training_error(list(zip(network.weights, network.biases)))


def field(problem: Problem, backend: Backend) -> float:
    """Of the displacements of a grid."""
    oracle, parameters = backends.get("reference"), problem.parameters
    noise, taps = oracle.noise(problem.seed, 0, 0, SIDE, SIDE), gaussian_taps(parameters.sigma)
    got = backend.displacement_field(noise, taps, parameters.alpha)
    return relative_error(got, oracle.displacement_field(noise, taps, parameters.alpha))


def deformation(problem: Problem, backend: Backend) -> float:
    """Of the pixels of some images."""
    images, labels = problem.images[:FEW], problem.labels[:FEW]
    arguments = labels, problem.parameters, problem.seed, 1
    got = np.asarray(deform(backend.put(images), *arguments, backend))
    return relative_error(got, deform(images, *arguments, backends.get("reference")))


def validation(problem: Problem, backend: Backend) -> float:
    """Of the outputs for some images; infinite when the count of errors is another."""
    network, images, labels = problem.network, problem.flat_images[:FEW], problem.labels[:FEW]
    loaded, oracle = backend.load(network), backends.get("reference")
    want = oracle.predict(network, images)
    wrong = np.count_nonzero(want.argmax(axis=1) != labels)
    if backend.count_errors(loaded, backend.put(images), backend.put(labels)) != wrong:
        return float("inf")
    return relative_error(backend.predict(loaded, backend.put(images)), want)


def epoch(problem: Problem, backend: Backend) -> float:
    """Of its three parts."""
    return max(part(problem, backend) for part in (deformation, step, validation))
