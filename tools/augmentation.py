"""Times elastic deformation beside Albumentations and torchvision: images a second.

Each library deforms by its own transform, at about the same strength: noise scaled by 36 pixels and
smoothed with a sigma of 6. Ours also rotates or shears, and scales. The others give a batch one map
for all of its images; here each image gets a map of its own, so they take them one by one. Cases
take turns; figures are medians. One thread.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from mlpcore import ElasticDeformer
from mlpcore.commands.options import run_tool
from mlpcore.typing import AnyArray
from speed.timing import Case, Settings, measure

#: A name, how many images a call takes, and a function that deforms so many, from 0 to BATCH.
Contestant: TypeAlias = tuple[str, int, Callable[[int], object]]

BATCH = 100
SIGMA, ALPHA = 6.0, 36.0


def repeat(function: Any, *arguments: object) -> None:
    """Calls a function as often as the last argument says."""
    *inputs, n = arguments
    for _ in range(cast(int, n)):
        function(*inputs)


def ours(images: AnyArray) -> Iterator[Contestant]:
    deformer = ElasticDeformer(SIGMA, ALPHA, channels="last", threads=1, random_state=0)
    deformer.fit(images)

    def one(n: int) -> None:
        for i in range(n):
            deformer.deform(images[:1], indices=[i])

    yield "mlpcore, one image", 1, one
    yield "mlpcore, batch", BATCH, lambda n: deformer.deform(images)


def by_torchvision(images: AnyArray) -> Iterator[Contestant]:
    import torch
    from torchvision.transforms import v2

    from mlpcore.transforms.torchvision import ElasticDeformation

    torch.set_num_threads(1)
    image = torch.from_numpy(np.ascontiguousarray(np.moveaxis(images[0], -1, 0)))
    # Its alpha is for images that are 2 wide.
    for name, transform in (
        ("mlpcore.transforms.torchvision", ElasticDeformation(SIGMA, ALPHA)),
        ("torchvision ElasticTransform", v2.ElasticTransform(2 * ALPHA, SIGMA)),
    ):
        yield name, 1, partial(repeat, transform, image)


def by_albumentations(images: AnyArray) -> Iterator[Contestant]:
    import albumentations
    import cv2

    from mlpcore.transforms.albumentations import ElasticDeformation

    cv2.setNumThreads(1)
    # Its uniform noise has the same variance. `approximate` smooths with 17 cells instead of all.
    options: dict[str, Any] = {"noise_distribution": "uniform", "p": 1}
    peer: Any = albumentations.ElasticTransform
    own: Any = ElasticDeformation(SIGMA, ALPHA, p=1)
    for name, transform in (
        ("mlpcore.transforms.albumentations", own),
        ("albumentations ElasticTransform", peer(ALPHA, SIGMA, **options)),
        ("albumentations, approximate", peer(ALPHA, SIGMA, approximate=True, **options)),
    ):
        yield name, 1, partial(repeat, partial(transform, image=images[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[28, 128], help="of the images")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    for side in options.sides:
        rng = np.random.default_rng(0)
        shape = (BATCH, side, side, options.channels)
        for dtype in (np.uint8, np.float32):
            images: AnyArray = rng.integers(0, 256, shape).astype(dtype)
            if dtype == np.float32:
                images /= 255
            contestants = [*ours(images)]
            for library, enter in (
                ("torchvision", by_torchvision),
                ("albumentations", by_albumentations),
            ):
                if importlib.util.find_spec(library):
                    contestants += enter(images)
            cases = [Case(run, step, max(step, BATCH)) for _, step, run in contestants]
            timings = measure(cases, Settings(options.seconds, options.repeats))
            print(f"{side} x {side} x {options.channels}, {np.dtype(dtype)}: images a second")
            for (name, *_), timing in zip(contestants, timings):
                print(f"  {name:40} {1 / timing.seconds:10,.0f}   {timing.seconds * 1e3:8.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(run_tool(main))
