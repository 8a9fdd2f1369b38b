"""On-line training with PyTorch: by hand, with autograd, and on a GPU as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mlpcore.network.activation import A, B
from mlpcore.typing import Int32Array
from speed.peers.base import Checked, check_trainer
from speed.problem import Problem, Steps
from speed.routines import rectifiers

#: A tensor of PyTorch, which need not be installed.
Tensor: TypeAlias = Any


def torch_gpu() -> bool:
    """Whether PyTorch finds a GPU."""
    import torch

    return torch.cuda.is_available()


class Tensors:
    """Images, targets and layers on a device."""

    def __init__(self, problem: Steps, device: str):
        import torch

        def put(array: Any) -> Tensor:
            return torch.tensor(np.ascontiguousarray(array), device=device)

        self.torch, self.device, self.rate = torch, device, problem.rate
        self.images, self.targets = put(problem.flat_images), put(problem.targets)
        network = problem.network
        self.layers = [(put(w), put(b)) for w, b in zip(network.weights, network.biases)]

    def step(self, x: Tensor, target: Tensor) -> None:
        """One sample by hand: addmv, mv and addr_, the weights changed in place."""
        torch, states = self.torch, [x]
        for w, bias in self.layers:
            states.append(torch.tanh(torch.addmv(bias, w, states[-1]).mul_(B)).mul_(A))
        error = states[-1] - target
        for layer in range(len(self.layers) - 1, -1, -1):
            (w, bias), y = self.layers[layer], states[layer + 1]
            delta = error * (A * A - y * y).mul_(B / A)
            if layer:
                error = torch.mv(w.t(), delta)
            w.addr_(delta, states[layer], alpha=-self.rate)
            bias.add_(delta, alpha=-self.rate)

    def wait(self) -> None:
        """Returns when the device has done all its work."""
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def parameters(self) -> list[tuple[Any, Any]]:
        """As NumPy's arrays."""
        return [(w.cpu().numpy(), b.cpu().numpy()) for w, b in self.layers]


class Rectifiers(Tensors):
    """The same for a network of rectifiers with softmax outputs, trained for cross-entropy."""

    def step(self, x: Tensor, target: Tensor) -> None:
        """One sample by hand: addmv, mv and addr_ over all weights, whatever is active."""
        torch, states = self.torch, [x]
        for w, bias in self.layers[:-1]:
            states.append(torch.addmv(bias, w, states[-1]).relu_())
        w, bias = self.layers[-1]
        delta = torch.softmax(torch.addmv(bias, w, states[-1]), 0) - target
        for layer in range(len(self.layers) - 1, -1, -1):
            (w, bias), x = self.layers[layer], states[layer]
            below = torch.mv(w.t(), delta).mul_(x > 0) if layer else delta
            w.addr_(delta, x, alpha=-self.rate)
            bias.add_(delta, alpha=-self.rate)
            delta = below


def check_by_hand(problem: Problem, threads: int, device: str = "cpu") -> Checked:
    """Without autograd, each operation launched from Python."""
    return _check_steps(problem, Tensors(problem, device), threads)


def check_rectifiers(problem: Problem, threads: int) -> Checked:
    """The same for the network of rectifiers."""
    steps = rectifiers(problem)
    return _check_steps(steps, Rectifiers(steps, "cpu"), threads)


def _check_steps(problem: Steps, tensors: Tensors, threads: int) -> Checked:
    torch = tensors.torch

    def train(order: Int32Array) -> None:
        torch.set_num_threads(threads)
        with torch.inference_mode():
            for i in order.tolist():
                tensors.step(tensors.images[i], tensors.targets[i])
        tensors.wait()

    return check_trainer(problem, train, tensors.parameters)


def check_autograd(problem: Problem, threads: int, device: str = "cpu") -> Checked:
    """As most users write it: modules, a loss, backward(), and the optimiser SGD."""
    tensors = Tensors(problem, device)
    torch = tensors.torch
    modules = torch.nn.ModuleList(
        torch.nn.Linear(w.shape[1], w.shape[0], device=device) for w, _ in tensors.layers
    )
    with torch.no_grad():
        for module, (w, b) in zip(modules, tensors.layers):
            module.weight.copy_(w)
            module.bias.copy_(b)
    tensors.layers = [(module.weight.detach(), module.bias.detach()) for module in modules]
    optimiser = torch.optim.SGD(modules.parameters(), lr=problem.rate)

    def train(order: Int32Array) -> None:
        torch.set_num_threads(threads)
        for i in order.tolist():
            y = tensors.images[i : i + 1]
            for module in modules:
                y = A * torch.tanh(B * module(y))
            loss = 0.5 * (y - tensors.targets[i]).square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        tensors.wait()

    return check_trainer(problem, train, tensors.parameters)


def record(torch: Any, step: Callable[[], None]) -> Any:
    """A CUDA graph of a step, which runs three times before on a stream of its own."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def check_graph(problem: Problem, threads: int, compiled: bool = False) -> Checked:
    """By hand, a whole step recorded as a CUDA graph and replayed; compiled before, or not.

    The graph finds its sample itself: it looks up the order at a position that it moves on.
    """
    tensors = Tensors(problem, "cuda")
    torch = tensors.torch
    places = torch.zeros(len(problem.order), dtype=torch.int64, device="cuda")
    position = torch.zeros(1, dtype=torch.int64, device="cuda")
    step = torch.compile(tensors.step) if compiled else tensors.step

    def next_step() -> None:
        i = places.index_select(0, position)
        step(tensors.images.index_select(0, i)[0], tensors.targets.index_select(0, i)[0])
        position.add_(1)

    start = [tensor.clone() for layer in tensors.layers for tensor in layer]
    with torch.inference_mode():
        graph = record(torch, next_step)
        for tensor, value in zip((t for layer in tensors.layers for t in layer), start):
            tensor.copy_(value)

    def train(order: Int32Array) -> None:
        with torch.inference_mode():
            places[: len(order)] = torch.from_numpy(order.astype(np.int64))
            position.zero_()
            for _ in range(len(order)):
                graph.replay()
            tensors.wait()

    return check_trainer(problem, train, tensors.parameters)
