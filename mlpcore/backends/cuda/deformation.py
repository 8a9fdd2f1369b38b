"""Deforms many images on a device, a few grids of images at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from mlpcore.backends.arguments import GRID, IMAGES_PER_GRID, noise_shape
from mlpcore.backends.cuda import launch as kernels
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray, Driver
from mlpcore.backends.deforming import EpochFields

#: Grids deformed at a time; fewer where their noise would have more floats than this.
GRIDS_AT_A_TIME = 32
NOISE_FLOATS = 1 << 26


#: Memory for noise, then fields, of so many grids; and for what lies between them.
Fields: TypeAlias = tuple[DeviceArray, DeviceArray]


class FieldMemory:
    """Memory for the displacement fields of some grids, kept from one epoch to the next."""

    def __init__(self, driver: Driver):
        self._driver = driver
        self._arrays: Fields | None = None

    def reserve(
        self, height: int, width: int, taps_shape: tuple[int, int], first: int, n: int
    ) -> Fields:
        """The memory for n images of h x w pixels, number `first` and on."""
        shape, field = noise_shape(height, width, taps_shape), (GRID * height, GRID * width)
        between = kernels.middle_shape(shape, taps_shape, field)
        size = 2 * max(math.prod(shape), math.prod(field))
        grids = (first + n - 1) // IMAGES_PER_GRID - first // IMAGES_PER_GRID + 1
        grids = min(grids, GRIDS_AT_A_TIME, max(1, NOISE_FLOATS // size))
        arrays = self._arrays
        sizes = size, 2 * math.prod(between)
        if arrays is None or any(a.shape[1] != s or len(a) < grids for a, s in zip(arrays, sizes)):
            self._arrays = arrays = None  # freed before more is taken
            noise, middle = (DeviceArray(self._driver, (grids, s), np.float32) for s in sizes)
            self._arrays = arrays = noise, middle
        return arrays

    def launches(
        self,
        images: DeviceArray,
        affine: DeviceArray,
        out: DeviceArray,
        fields: EpochFields,
        first: int,
        background: float,
    ) -> Iterator[Launch]:
        """Deforms images (n, h, w), number `first` and on; the arguments of `Backend.deform`."""
        n, height, width = images.shape
        shape = noise_shape(height, width, fields.taps.shape)
        arrays = self.reserve(height, width, fields.taps.shape, first, n)
        noise, middle = (array.address for array in arrays)
        for begin, end in _by_grids(first, n, len(arrays[0])):
            part = slice(begin - first, end - first)
            grid = begin // IMAGES_PER_GRID
            n_grids = (end - 1) // IMAGES_PER_GRID + 1 - grid
            yield from kernels.noise(fields.key, fields.epoch, grid, n_grids, shape, noise)
            yield from kernels.displacement_field(
                2 * n_grids,
                shape,
                noise,
                fields.taps.address,
                fields.taps.shape,
                fields.alpha,
                middle,
                (GRID * height, GRID * width),
                noise,
            )
            yield from kernels.deform(
                "deform_kernel",
                images[part].address,
                (end - begin, height, width),
                first=begin,
                affine=affine[part].address,
                field=noise,
                background=background,
                out=out[part].address,
            )


def _by_grids(first: int, n: int, grids: int) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) image numbers that lie in at most so many grids."""
    begin, stop = first, first + n
    while begin < stop:
        end = min(stop, (begin // IMAGES_PER_GRID + grids) * IMAGES_PER_GRID)
        yield begin, end
        begin = end
