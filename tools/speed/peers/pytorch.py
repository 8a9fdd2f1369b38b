"""Training with PyTorch: on-line by hand, and by mini-batches."""

import time
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.typing import AnyArray, Int32Array
from speed.peers.base import Layers, Task

#: A tensor of PyTorch, which need not be installed.
Tensor: TypeAlias = Any

#: Optimisers. `fused` does a step in one kernel instead of several for each layer.
OPTIMISERS: dict[str, dict[str, Any]] = {
    "AdamW": {"fused": True},
    "SGD": {"fused": True, "momentum": 0.9},
}


def torch_gpu() -> bool:
    """Whether PyTorch finds a GPU."""
    import torch

    return torch.cuda.is_available()


class ByHand:
    """On-line training without autograd: addmv, mv and addr_ over all weights, in place."""

    def __init__(self, threads: int, device: str = "cpu"):
        import torch

        self.torch, self.threads, self.device = torch, threads, device

    def put(self, array: AnyArray) -> Tensor:
        return self.torch.tensor(np.ascontiguousarray(array), device=self.device)

    def load(self, network: Network) -> Layers:
        self.rectified, wanted = network.activation == "relu", np.eye(network.layer_sizes[-1])
        self.targets = self.put((wanted if self.rectified else 2 * wanted - 1).astype(np.float32))
        return [(self.put(w), self.put(b)) for w, b in zip(network.weights, network.biases)]

    def store(self, layers: Layers, network: Network) -> None:
        for w, b, layer in zip(network.weights, network.biases, layers):
            w[...], b[...] = (tensor.cpu().numpy() for tensor in layer)

    def train(
        self, layers: Layers, images: Tensor, labels: Tensor, order: Int32Array, rate: float
    ) -> None:
        self.torch.set_num_threads(self.threads)
        targets = self.targets[labels.long()]
        with self.torch.inference_mode():
            for i in order.tolist():
                self.step(layers, images[i], targets[i], rate)
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def step(self, layers: Layers, x: Tensor, target: Tensor, rate: float) -> None:
        """One sample."""
        torch, states = self.torch, [x]
        for w, bias in layers:
            states.append(
                self.activated(torch.addmv(bias, w, states[-1]), len(states) == len(layers))
            )
        delta = states[-1] - target
        if not self.rectified:  # else the outputs are a softmax's, with cross-entropy
            delta *= self.slope(states[-1])
        for layer in range(len(layers) - 1, -1, -1):
            (w, bias), below = layers[layer], states[layer]
            error = torch.mv(w.t(), delta).mul_(self.slope(below)) if layer else delta
            w.addr_(delta, below, alpha=-rate)
            bias.add_(delta, alpha=-rate)
            delta = error

    def activated(self, a: Tensor, is_output: bool) -> Tensor:
        """The states of a layer."""
        if not self.rectified:
            return self.torch.tanh(a.mul_(B)).mul_(A)
        return self.torch.softmax(a, 0) if is_output else a.relu_()

    def slope(self, y: Tensor) -> Tensor:
        """The activation's derivative at the states of a layer."""
        return y > 0 if self.rectified else (A * A - y * y).mul_(B / A)


def train_pytorch(
    task: Task, epochs: int, seed: int, rate: float, batch: int, optimiser: str
) -> tuple[float, float]:
    """Trains as most users would, but without the cost of a DataLoader.

    `rate` is the peak of a one-cycle learning rate. All else in the cycle, layers and optimisers
    are PyTorch's defaults.
    """
    import torch

    torch.set_num_threads(task.threads)
    torch.manual_seed(seed)
    linear = [torch.nn.Linear(*pair) for pair in pairwise(task.layer_sizes)]
    parts = [part for layer in linear for part in (layer, torch.nn.ReLU())]
    model = torch.nn.Sequential(*parts[:-1])
    labels = torch.from_numpy(task.data.train_labels.astype("int64"))
    deformed = map(torch.from_numpy, task.deformed(seed, epochs))
    begin = time.perf_counter()
    steps = getattr(torch.optim, optimiser)(model.parameters(), lr=rate, **OPTIMISERS[optimiser])
    total = epochs * -(-len(labels) // batch)
    cycle = torch.optim.lr_scheduler.OneCycleLR(steps, rate, total)
    for images in deformed:
        for indices in torch.randperm(len(labels)).split(batch):
            loss = torch.nn.functional.cross_entropy(model(images[indices]), labels[indices])
            steps.zero_grad()
            loss.backward()
            steps.step()
            cycle.step()
    seconds = time.perf_counter() - begin
    layers = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in linear]
    return seconds, task.error_of(layers)
