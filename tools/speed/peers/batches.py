"""Mini-batches with PyTorch: rectifiers, cross-entropy, a one-cycle learning rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from speed.lesson import Lesson, Trained
from speed.peers.pytorch import Tensor

#: The optimisers. `fused` does a step in one kernel instead of several for each layer.
OPTIMISERS: dict[str, dict[str, Any]] = {
    "AdamW": {"fused": True},
    "SGD": {"fused": True, "momentum": 0.9},
}


def by_torchvision(lesson: Lesson) -> Callable[[int], Tensor]:
    """Deforms with torchvision, image by image, so that each has a map of its own.

    An elastic `alpha` is twice ours, because torchvision's images are 2 wide, not so many pixels.
    """
    import torch
    from torchvision.transforms import InterpolationMode, v2

    values, bilinear = lesson.deformation, InterpolationMode.BILINEAR
    scale = 1 - values.gamma / 100, 1 + values.gamma / 100
    change = v2.Compose(
        [
            v2.RandomAffine(values.beta, scale=scale, interpolation=bilinear),
            v2.ElasticTransform(2 * values.alpha, values.sigma),
        ]
    )
    images = torch.from_numpy(lesson.unit.train_images)[:, None]
    return lambda epoch: torch.stack([change(image) for image in images]).flatten(1)


def train_batches(
    lesson: Lesson, rate: float, batch: int, optimiser: str, torchvision: bool = False
) -> Trained:
    """Trains as most users would, but without the cost of a DataLoader.

    `rate` is the peak of the cycle. All else in the cycle, layers and optimisers are PyTorch's
    defaults.
    """
    import torch

    torch.set_num_threads(lesson.threads)
    torch.manual_seed(lesson.seed)
    linear = [torch.nn.Linear(*pair) for pair in pairwise(lesson.layer_sizes)]
    parts = [part for layer in linear for part in (layer, torch.nn.ReLU())]
    model = torch.nn.Sequential(*parts[:-1])
    labels = torch.from_numpy(lesson.data.train_labels.astype("int64"))
    images_of = (
        by_torchvision(lesson) if torchvision else lambda i: torch.from_numpy(lesson.deformed(i))
    )
    begin = time.perf_counter()
    steps = getattr(torch.optim, optimiser)(model.parameters(), lr=rate, **OPTIMISERS[optimiser])
    total = lesson.epochs * -(-len(labels) // batch)
    cycle = torch.optim.lr_scheduler.OneCycleLR(steps, rate, total)
    for epoch in range(lesson.epochs):
        images = images_of(epoch)
        for indices in torch.randperm(len(labels)).split(batch):
            loss = torch.nn.functional.cross_entropy(model(images[indices]), labels[indices])
            steps.zero_grad()
            loss.backward()
            steps.step()
            cycle.step()
    seconds = time.perf_counter() - begin
    layers = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in linear]
    return Trained(lesson.network(layers), seconds)
