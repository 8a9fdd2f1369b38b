"""The same on-line training in PyTorch, to be timed beside ours and to check it in float64."""

from __future__ import annotations

import time

import numpy as np
import torch
from mlpcore.network import Network

from mlpcore.backends.inference import A, B


class Peer:
    """A network trained sample by sample as PyTorch's own modules and optimiser do it.

    Parameters
    ----------
    network
        Where the weights start.
    graph
        Whether the whole step, forward to update, is captured once and replayed per sample.
    """

    def __init__(self, network: Network, rate: float, device: str, graph: bool = False):
        layers = []
        for weights, biases in zip(network.weights, network.biases):
            layer = torch.nn.Linear(weights.shape[1], weights.shape[0])
            layer.weight.data = torch.tensor(weights)
            layer.bias.data = torch.tensor(biases)
            layers.append(layer)
        self.layers = torch.nn.ModuleList(layers).to(device)
        self.optimiser = torch.optim.SGD(self.layers.parameters(), lr=rate)
        self.image = torch.zeros(network.layer_sizes[0], device=device)
        self.target = torch.zeros(network.layer_sizes[-1], device=device)
        self.graph = self._capture() if graph else None

    def _step(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        y = self.image
        for layer in self.layers:
            y = A * torch.tanh(B * layer(y))
        loss = 0.5 * torch.sum((y - self.target) ** 2)
        loss.backward()
        self.optimiser.step()

    def _capture(self) -> torch.cuda.CUDAGraph:
        """The step as a graph, after the warm-up that PyTorch asks for."""
        before = [p.detach().clone() for p in self.layers.parameters()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self._step()
        with torch.no_grad():
            for parameter, value in zip(self.layers.parameters(), before):
                parameter.copy_(value)
        return graph

    def train(self, images: torch.Tensor, targets: torch.Tensor, order: list[int]) -> None:
        """One update after each sample."""
        for i in order:
            if self.graph is None:
                self.image, self.target = images[i], targets[i]
                self._step()
            else:
                self.image.copy_(images[i])
                self.target.copy_(targets[i])
                self.graph.replay()


def targets_of(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """(n, n_classes) float32: +1 for the class, -1 elsewhere."""
    return np.where(labels[:, None] == np.arange(n_classes), 1, -1).astype(np.float32)


def seconds_per_sample(peer: Peer, images, labels, n_classes: int, n: int) -> float:
    """Mean time of a sample over n samples, after a tenth as many to warm up."""
    device = peer.image.device
    on_device = torch.tensor(images, device=device)
    targets = torch.tensor(targets_of(labels, n_classes), device=device)
    order = np.random.default_rng(0).integers(0, len(images), n).tolist()
    peer.train(on_device, targets, order[: max(1, n // 10)])
    _synchronize(device)
    start = time.perf_counter()
    peer.train(on_device, targets, order)
    _synchronize(device)
    return (time.perf_counter() - start) / n


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def train_in_float64(network: Network, images, labels, order, rate: float, device: str) -> list:
    """The oracle's steps in float64: weights, then biases, of each layer as NumPy arrays.

    `mlpcore.backends.reference` in another library, because that is too slow for a thousand
    samples of the largest networks.
    """

    def float64(array):
        return torch.tensor(np.asarray(array), dtype=torch.float64, device=device)

    weights, biases = [float64(w) for w in network.weights], [float64(b) for b in network.biases]
    samples, targets = float64(images), float64(targets_of(labels, len(biases[-1])))
    for i in order.tolist():
        states = [samples[i]]
        for w, b in zip(weights, biases):
            states.append(A * torch.tanh(B * (w @ states[-1] + b)))
        delta = (states[-1] - targets[i]) * _slope(states[-1])
        for layer in range(len(weights) - 1, -1, -1):
            below = (weights[layer].T @ delta) * _slope(states[layer])
            weights[layer].addr_(delta, states[layer], alpha=-rate)
            biases[layer].add_(delta, alpha=-rate)
            delta = below
    return [array.cpu().numpy() for array in weights + biases]


def _slope(y: torch.Tensor) -> torch.Tensor:
    return B / A * (A - y) * (A + y)
