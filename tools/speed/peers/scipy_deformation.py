"""The whole deformation with SciPy."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from mlpcore import backends
from mlpcore.backends.arguments import GRID, IMAGES_PER_GRID, MARGIN, TAPS
from mlpcore.deformation.deform import draw_affine
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.typing import Float32Array
from speed import routines
from speed.peers.base import Checked
from speed.problem import SIDE, Problem
from speed.timing import Case


def deform_grid(
    images: Float32Array,
    affine: Float32Array,
    noise: Float32Array,
    parameters: DeformationParameters,
) -> Float32Array:
    """Up to 100 images with the displacements of one grid of noise (2, 310, 310)."""
    inside = slice(MARGIN // 2, -(MARGIN // 2))
    smooth = [gaussian_filter(cells, parameters.sigma, radius=TAPS // 2) for cells in noise]
    field = parameters.alpha * np.stack(smooth)[:, inside, inside]
    tiles = field.reshape(2, GRID, SIDE, GRID, SIDE).transpose(1, 3, 0, 2, 4)
    centre = SIDE // 2
    y, x = np.mgrid[-centre : centre + 1, -centre : centre + 1].astype(np.float32)
    source = np.einsum("nij,jyx->niyx", affine, np.stack([x, y])) + centre
    source += tiles.reshape(-1, 2, SIDE, SIDE)[: len(images)]
    out = np.empty_like(images)
    for image, (columns, rows), result in zip(images, source, out):
        at = np.stack([rows, columns])
        map_coordinates(image, at, result, order=1, mode="grid-constant", cval=-1.0)
    return out


def check_scipy(problem: Problem, threads: int) -> Checked:
    """Compared with the oracle on the images of one grid, with the oracle's noise."""
    parameters, images = problem.deformation, problem.images
    few, rng = min(IMAGES_PER_GRID, len(images)), np.random.default_rng(0)
    affine = draw_affine(parameters, problem.labels[:few], 0, 1)
    noise = backends.get("reference").noise(0, 1, 0, SIDE, SIDE)

    def run(n: int) -> None:
        affine = draw_affine(parameters, problem.labels[:n], 0, 1)
        for begin in range(0, n, IMAGES_PER_GRID):
            part = slice(begin, begin + IMAGES_PER_GRID)
            noise = 2 * rng.random((2, *[GRID * SIDE + MARGIN] * 2), np.float32) - 1
            deform_grid(images[part], affine[part], noise, parameters)

    got = deform_grid(images[:few], affine, noise, parameters)
    error = problem.error(partial(routines.deformation, few=few), [(got, 0)])
    return error, Case(run, IMAGES_PER_GRID, problem.whole_grids)
