"""On-line training with PyTorch: autograd, by hand, and on a GPU as a CUDA graph."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mlpcore.typing import AnyArray, Int32Array
from speed.peers.base import PaperTrainer, targets
from speed.problem import Parameters, Problem

#: PyTorch's, which need not be installed.
Tensor: TypeAlias = Any


def no_gpu() -> str | None:
    """Why PyTorch cannot use a GPU here."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    import torch

    return None if torch.cuda.is_available() else "PyTorch finds no CUDA device"


class TorchTrainer(PaperTrainer):
    """By hand and without autograd: addmv, mv and addr_, the weights changed in place."""

    device = "cpu"

    def set_up(self, problem: Problem) -> None:
        import torch

        self.torch = torch
        self.images = self.put(problem.flat_images)
        self.targets = self.put(targets(problem)[problem.labels])
        self.weights = [self.put(w) for w in problem.network.weights]
        self.biases = [self.put(b) for b in problem.network.biases]

    def put(self, array: AnyArray) -> Tensor:
        """A copy on the device."""
        return self.torch.tensor(np.ascontiguousarray(array), device=self.device)

    def step(self, x: Tensor, target: Tensor) -> None:
        torch, a, b = self.torch, self.variant.amplitude, self.variant.slope
        states = [x]
        for w, bias in zip(self.weights, self.biases):
            states.append(torch.tanh(torch.addmv(bias, w, states[-1]).mul_(b)).mul_(a))
        error = states[-1] - target
        for layer in range(self.n_layers - 1, -1, -1):
            y = states[layer + 1]
            delta = error * (a * a - y * y).mul_(b / a)
            if layer:
                error = torch.mv(self.weights[layer].t(), delta)
            self.weights[layer].addr_(delta, states[layer], alpha=-self.rate)
            self.biases[layer].add_(delta, alpha=-self.rate)

    def train(self, order: Int32Array) -> None:
        self.torch.set_num_threads(self.threads)
        with self.torch.inference_mode():
            for i in order.tolist():
                self.step(self.images[i], self.targets[i])
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def clock(self, call: Callable[[], object]) -> float:
        if self.device == "cpu":
            return super().clock(call)
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return 1e-3 * start.elapsed_time(stop)

    def parameters(self) -> Parameters:
        return [(w.cpu().numpy(), b.cpu().numpy()) for w, b in zip(self.weights, self.biases)]


class AutogradTrainer(TorchTrainer):
    """As most users write it: modules, a loss, backward(), and the optimiser SGD."""

    def set_up(self, problem: Problem) -> None:
        super().set_up(problem)
        torch, nn = self.torch, self.torch.nn
        with torch.no_grad():
            self.linear = nn.ModuleList(
                nn.Linear(w.shape[1], w.shape[0], device=self.device) for w in self.weights
            )
            for module, w, b in zip(self.linear, self.weights, self.biases):
                module.weight.copy_(w)
                module.bias.copy_(b)
        self.weights = [module.weight.detach() for module in self.linear]
        self.biases = [module.bias.detach() for module in self.linear]
        self.optimiser = torch.optim.SGD(self.linear.parameters(), lr=self.rate)

    def train(self, order: Int32Array) -> None:
        torch, a, b = self.torch, self.variant.amplitude, self.variant.slope
        torch.set_num_threads(self.threads)
        for i in order.tolist():
            y = self.images[i : i + 1]
            for module in self.linear:
                y = a * torch.tanh(b * module(y))
            loss = 0.5 * (y - self.targets[i]).square().sum()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        if self.device != "cpu":
            torch.cuda.synchronize()


class GpuTorchTrainer(TorchTrainer):
    """By hand on a GPU, each operation launched from Python."""

    device = "cuda"


class GpuAutogradTrainer(AutogradTrainer):
    """Autograd and SGD on a GPU."""

    device = "cuda"


class GraphTrainer(TorchTrainer):
    """By hand on a GPU, a whole step recorded as a CUDA graph and replayed.

    The graph finds its sample itself: it looks up the order at a position that it moves on.
    """

    device = "cuda"
    compiled = False

    def set_up(self, problem: Problem) -> None:
        super().set_up(problem)
        torch = self.torch
        self.order = torch.zeros(len(problem.order), dtype=torch.int64, device=self.device)
        self.position = torch.zeros(1, dtype=torch.int64, device=self.device)
        start = [t.clone() for t in (*self.weights, *self.biases)]
        step = torch.compile(self.step) if self.compiled else self.step
        with torch.inference_mode():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._next(step)
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self._next(step)
            for tensor, value in zip((*self.weights, *self.biases), start):
                tensor.copy_(value)

    def _next(self, step: Callable[[Tensor, Tensor], None]) -> None:
        i = self.order.index_select(0, self.position)
        step(self.images.index_select(0, i)[0], self.targets.index_select(0, i)[0])
        self.position.add_(1)

    def train(self, order: Int32Array) -> None:
        torch = self.torch
        with torch.inference_mode():
            self.order[: len(order)] = torch.from_numpy(order.astype(np.int64))
            self.position.zero_()
            for _ in range(len(order)):
                self.graph.replay()
            torch.cuda.synchronize()


class CompiledGraphTrainer(GraphTrainer):
    """The same, its step compiled by torch.compile before it is recorded."""

    compiled = True
