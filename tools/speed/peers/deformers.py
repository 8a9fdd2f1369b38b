"""Elastic deformation by other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import GRID, IMAGES_PER_GRID, MARGIN, TAPS
from mlpcore.deformation.deform import DeformationParameters, deform, draw_affine
from mlpcore.typing import Float32Array
from speed.peers.base import Ready, WrongResult
from speed.problem import SIDE, TOLERANCE, Problem, relative_error
from speed.timing import Case

#: Images (n, 29, 29) to deformed images.
Deformer: TypeAlias = Callable[[Float32Array], Float32Array]


# ---- SciPy: the same deformation ----------------------------------------------------------


def scipy_grid(
    images: Float32Array,
    affine: Float32Array,
    noise: Float32Array,
    parameters: DeformationParameters,
) -> Float32Array:
    """Up to 100 images with the displacements of one grid of noise (2, 310, 310)."""
    from scipy.ndimage import gaussian_filter, map_coordinates

    inside = slice(MARGIN // 2, -(MARGIN // 2))
    smooth = [
        parameters.alpha * gaussian_filter(cells, parameters.sigma, radius=TAPS // 2)
        for cells in noise
    ]
    field = np.stack(smooth)[:, inside, inside].reshape(2, GRID, SIDE, GRID, SIDE)
    tiles = field.transpose(1, 3, 0, 2, 4).reshape(IMAGES_PER_GRID, 2, SIDE, SIDE)
    centre = SIDE // 2
    y, x = np.mgrid[-centre : centre + 1, -centre : centre + 1].astype(np.float32)
    source = np.einsum("nij,jyx->niyx", affine, np.stack([x, y])) + centre
    source += tiles[: len(images)]
    out = np.empty_like(images)
    for image, (columns, rows), result in zip(images, source, out):
        at = np.stack([rows, columns])
        map_coordinates(image, at, result, order=1, mode="grid-constant", cval=-1.0)
    return out


def ready_scipy(problem: Problem, threads: int) -> Ready:
    """Compared with the oracle on a grid of images and the oracle's noise."""
    parameters, seed = problem.parameters, problem.seed
    n = min(IMAGES_PER_GRID, len(problem.images))
    oracle = backends.get("reference")
    affine = draw_affine(parameters, problem.labels, seed, 1)
    noise = oracle.noise(seed, 1, 0, SIDE, SIDE)
    got = scipy_grid(problem.images[:n], affine[:n], noise, parameters)
    arguments = problem.labels[:n], parameters, seed, 1, oracle
    error = relative_error(got, deform(problem.images[:n], *arguments))
    if error > TOLERANCE:
        raise WrongResult(f"pixels are off by {error:.1e}, more than {TOLERANCE:.0e}")
    rng = np.random.default_rng(seed)

    def run(n: int) -> None:
        affine = draw_affine(parameters, problem.labels[:n], seed, 1)
        for begin in range(0, n, IMAGES_PER_GRID):
            part = slice(begin, min(begin + IMAGES_PER_GRID, n))
            noise = 2 * rng.random((2, *[GRID * SIDE + MARGIN] * 2), np.float32) - 1
            scipy_grid(problem.images[part], affine[part], noise, parameters)

    most = len(problem.images) // IMAGES_PER_GRID * IMAGES_PER_GRID
    return Ready(Case(run, IMAGES_PER_GRID, most), 1, error)


# ---- the others: an elastic deformation by conventions of their own ------------------------


def make_torchvision(problem: Problem, threads: int) -> Deformer:
    """A call per image: a call for a batch gives all its images the same field."""
    import torch
    from torchvision.transforms import v2

    parameters = problem.parameters
    # Its alpha counts half pixels.
    transform = v2.ElasticTransform(2 * parameters.alpha, parameters.sigma, fill=-1.0)

    def run(images: Float32Array) -> Float32Array:
        torch.set_num_threads(threads)
        tensor = torch.from_numpy(images)[:, None]
        return torch.stack([transform(image) for image in tensor])[:, 0].numpy()

    return run


def make_albumentations(problem: Problem, threads: int) -> Deformer:
    """A call per image, as the library works."""
    import albumentations
    import cv2

    parameters = problem.parameters
    transform = albumentations.ElasticTransform(
        alpha=parameters.alpha,
        sigma=parameters.sigma,
        interpolation=cv2.INTER_LINEAR,
        noise_distribution="uniform",
        border_mode=cv2.BORDER_CONSTANT,
        fill=-1.0,
        p=1.0,
    )

    def run(images: Float32Array) -> Float32Array:
        cv2.setNumThreads(threads)
        return np.stack([transform(image=image)["image"] for image in images])

    return run


def make_kornia(problem: Problem, threads: int) -> Deformer:
    """A call per batch of 100 images, each with a field of its own."""
    import torch
    from kornia.geometry.transform import elastic_transform2d

    parameters = problem.parameters
    # Its alpha counts half images, and it fills with zeros: the background is moved there.
    alpha = 2 * parameters.alpha / SIDE

    def run(images: Float32Array) -> Float32Array:
        torch.set_num_threads(threads)
        out = np.empty_like(images)
        for begin in range(0, len(images), IMAGES_PER_GRID):
            part = torch.from_numpy(images[begin : begin + IMAGES_PER_GRID])[:, None]
            noise = 2 * torch.rand(len(part), 2, SIDE, SIDE) - 1
            smooth = (TAPS, TAPS), (parameters.sigma,) * 2, (alpha, alpha)
            moved = elastic_transform2d(part + 1, noise, *smooth)
            out[begin : begin + len(part)] = (moved - 1)[:, 0].numpy()
        return out

    return run


def ready_elastic(make: Callable[[Problem, int], Deformer]) -> Callable[[Problem, int], Ready]:
    """For `Peer.ready` where there is no oracle.

    That the work is done is all that is checked: images of the same shape, each of them
    changed, no pixel outside the range.
    """

    def ready(problem: Problem, threads: int) -> Ready:
        run = make(problem, threads)
        images = problem.images[:20]
        out = run(images)
        if out.shape != images.shape or not np.all(np.abs(out) <= 1 + TOLERANCE):
            raise WrongResult("the result has another shape, or pixels outside [-1, 1]")
        changed = np.abs(out - images).mean(axis=(1, 2))
        if changed.min() < TOLERANCE:
            raise WrongResult("an image was left as it was")
        most = len(problem.images)
        return Ready(Case(lambda n: run(problem.images[:n]), 20, most // 20 * 20), threads, None)

    return ready
