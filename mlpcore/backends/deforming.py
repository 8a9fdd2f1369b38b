"""The contract of the deformation: what a backend draws at random, and how it deforms images.

Shapes: n images of h x w pixels. All arrays are C-contiguous float32 unless stated otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from mlpcore import philox
from mlpcore.backends import affine
from mlpcore.backends.arguments import (
    GRID,
    IMAGES_PER_GRID,
    MAX_ALPHA,
    MAX_SIGMA,
    MAX_TAPS,
    Shape,
    check_array,
    check_finite,
    check_indices,
    check_place,
    check_shape,
    check_sides,
)
from mlpcore.checks import check_real, check_whole
from mlpcore.data.pixels import PixelSpec
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, ArrayLike, BackendArray, DTypeLike, Float32Array, Float64Array


class EpochFields(NamedTuple):
    """The displacement fields of a training set in an epoch, as `Backend` checked them."""

    taps: BackendArray  # (cell, n_taps)
    alpha: float
    key: tuple[int, int]  # of the random numbers: see `mlpcore.philox`
    epoch: int


class Deformation(NamedTuple):
    """Images to deform, as `Deforming` checked them, where the backend computes."""

    images: BackendArray  # (n, h, w) float32, or bytes if there are `values`
    affine: BackendArray  # (n, 2, 2)
    background: float
    out: BackendArray  # (n, h, w), in other memory than the others
    displacement: EpochFields | BackendArray  # (n, 2, h, w), or that of an epoch
    first: int = 0  # the number of the first image in the set that the fields belong to
    values: Float32Array | None = None  # (256,) what bytes stand for


class Deforming(ABC):
    """The operations of a `Backend` on images, and where it keeps arrays.

    A public method checks what it is given, and then calls the method of the same name behind an
    underscore, which computes. A backend defines these.
    """

    # ---- arrays where the backend computes ---------------------------------------------

    def put(self, array: AnyArray) -> BackendArray:
        """An array where this backend computes; a NumPy array itself on a CPU."""
        return array

    def _finite_array(
        self, name: str, array: Any, shape: Shape, dtype: DTypeLike = np.float32
    ) -> Any:
        """An argument of this shape and type, where this backend computes. NumPy's are finite."""
        array = self._array(name, array, shape, dtype)
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            check_finite(name, array)
        return array

    def _array(self, name: str, array: Any, shape: Shape, dtype: DTypeLike = np.float32) -> Any:
        """An argument of this shape and type, where this backend computes."""
        return check_array(name, array, shape, dtype)

    def _copied_array(self, name: str, array: Any, shape: Shape, dtype: DTypeLike) -> Any:
        """`_array`, as a copy on a CPU: `progress` or another thread may write to the array."""
        array = self._array(name, array, shape, dtype)
        return array.copy() if isinstance(array, np.ndarray) else array

    def _output(
        self, out: BackendArray | None, shape: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> BackendArray:
        """The array for a result: `out`, if it is given and fits."""
        if out is None:
            return np.empty(shape, dtype)
        check_array("out", out, shape, dtype)
        if not (isinstance(out, np.ndarray) and out.flags.carray):
            expected = "a C-contiguous array that is aligned and can be written to"
            raise InputError(f"out: expected {expected}")
        return out

    def _unaliased(self, array: BackendArray, out: BackendArray) -> BackendArray:
        """An argument that is read while `out` is written: a copy if they share memory."""
        if array.flags.aligned and not np.may_share_memory(array, out):
            return array
        return array.copy()

    def take(
        self, array: BackendArray, rows: BackendArray, out: BackendArray | None = None
    ) -> BackendArray:
        """Rows (m, ...) of an array that `put` returned, which may be such as `BytesOnDisk`.

        `rows` is (m,) int32. The result is `out` if given, else a new array where `put` would have
        put it.
        """
        if not isinstance(array, np.ndarray):
            return np.asarray(array[rows])
        return np.take(array, rows, 0, out, "clip")

    def to_inputs(
        self, images: BackendArray, pixels: PixelSpec, out: BackendArray | None = None
    ) -> BackendArray:
        """The inputs (n, h, w) that `pixels` makes of bytes, with the same bits."""
        images, shape = self._pixels(images, pixels)
        out = self._output(out, (len(images), *shape))
        if len(images):
            self._to_inputs(images, pixels, out)
        return out

    def _to_inputs(self, images: BackendArray, pixels: PixelSpec, out: BackendArray) -> None:
        """See `to_inputs`. There is an image or more."""
        out[...] = pixels.to_inputs(pixels.to_images(images)).reshape(out.shape)

    # ---- what an epoch draws at random -----------------------------------------------
    # NumPy draws here. A device that holds the data draws the same numbers itself.

    def affine_maps(
        self,
        labels: BackendArray,
        angles: Float64Array,
        scale: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: BackendArray | None = None,
    ) -> BackendArray:
        """Random matrices (n, 2, 2) for images of these labels; see `mlpcore.backends.affine`.

        `labels` is (n,) uint8 and `angles` (256,) float64. Implementations may differ in the last
        bit. The result is `out` if given, else a new array where `put` would have put it.
        """
        labels = self._array("labels", labels, (None,), np.uint8)
        angles = self._finite_array("angles", angles, (affine.N_LABELS,), np.float64)
        check_real("scale", scale)
        if not 0 <= scale < 1:  # images keep some extent
            raise InputError(f"scale {scale:g}: expected 0 or more, and less than 1")
        check_place(epoch, first, len(labels))
        out = self._output(out, (len(labels), 2, 2))
        self._affine_maps(labels, angles, scale, seed, epoch, first, out)
        return out

    def _affine_maps(
        self,
        labels: BackendArray,
        angles: BackendArray,
        scale: float,
        seed: int,
        epoch: int,
        first: int,
        out: BackendArray,
    ) -> None:
        indices = np.arange(first, first + len(labels))
        out[...] = affine.affine_maps(indices, labels, angles, scale, seed, epoch)

    # ---- deformation -----------------------------------------------------------------

    def deform_by(
        self,
        images: Float32Array,
        affine: Float32Array,
        displacement: Float32Array,
        background: float = -1.0,
    ) -> Float32Array:
        """Images (n, h, w) looked up at M (p - c) + c + displacement(p).

        `affine` (n, 2, 2) maps target to source, in (x, y) about the centre c; `displacement`
        (n, 2, h, w) is in pixels, x before y. Bilinear; `background` outside the image. Where
        only background is looked up, the result is exactly that.
        """
        images = self._array("images", images, (None, None, None))
        n, height, width = images.shape
        check_sides(height, width)
        affine = self._finite_array("affine", affine, (n, 2, 2))
        displacement = self._finite_array("displacement", displacement, (n, 2, height, width))
        check_real("background", background)
        out = self._output(None, images.shape)
        if n:
            self._deform(Deformation(images, affine, float(background), out, displacement))
        return np.asarray(out)

    def deform(
        self,
        images: BackendArray,
        affine: BackendArray,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: BackendArray | None = None,
        background: float = -1.0,
        pixels: PixelSpec | None = None,
    ) -> BackendArray:
        """`deform_by` with the displacements of a training set's epoch, (n, h, w).

        `images` (n, h, w) are number `first` and on of the set: image i takes tile i % 100 of
        the field of grid i // 100. `affine` comes from `affine_maps`. The result is `out` if given,
        else a new array where `put` would have put it.

        With `pixels` the images are those that it makes of bytes (n, *pixels.pixel_shape), but that
        a lookup reads the bytes: it interpolates once.
        """
        images, shape = self._pixels(images, pixels)
        n = len(images)
        check_sides(*shape)
        check_place(epoch, first, n)
        check_real("background", background)
        affine = self._finite_array("affine", affine, (n, 2, 2))
        fields = self._epoch_fields(taps, alpha, seed, epoch)
        out = self._output(out, (n, *shape))
        if n:
            images, affine = (self._unaliased(array, out) for array in (images, affine))
            values = None if pixels is None else pixels.inputs_of_bytes
            around = float(background)
            self._deform(Deformation(images, affine, around, out, fields, first, values))
        return out

    def _pixels(
        self, images: BackendArray, pixels: PixelSpec | None
    ) -> tuple[BackendArray, tuple[int, ...]]:
        """Images (n, h, w), or pictures of bytes, and height and width of the images."""
        if pixels is None:
            images = self._array("images", images, (None, None, None))
            return images, images.shape[1:]
        if not pixels.whole or pixels.margin or min(pixels.pixel_shape + pixels.image_shape) < 2:
            raise InputError(f"{pixels}: expected bytes, without a margin, and sides of 2 or more")
        images = self._array("images", images, (None, *pixels.pixel_shape), np.uint8)
        return images, pixels.image_shape

    @abstractmethod
    def _deform(self, job: Deformation) -> None:
        """See `deform` and `deform_by`. There is an image or more."""

    def _epoch_fields(self, taps: ArrayLike, alpha: float, seed: int, epoch: int) -> EpochFields:
        """The fields of an epoch, checked; `taps` are as for `fields`."""
        check_real("alpha", alpha)
        if not abs(alpha) <= MAX_ALPHA:
            limits = f"-{MAX_ALPHA:g} to {MAX_ALPHA:g}"
            raise InputError(f"alpha {alpha:g}: expected a number from {limits}")
        weights: BackendArray = self._array("taps", taps, (None, None))
        check_whole("number of pixels of a cell", weights.shape[0], 1, MAX_SIGMA)
        check_whole("number of taps", weights.shape[1], 1, MAX_TAPS)
        if isinstance(weights, np.ndarray) and not (abs(weights) <= 1).all():
            raise InputError("taps: expected numbers from -1 to 1")
        return EpochFields(weights, float(alpha), philox.split_seed(seed), epoch)

    # ---- single images: their numbers in a set may be any ------------------------------

    def deform_selected(
        self,
        images: Float32Array,
        affine: Float32Array,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        indices: ArrayLike,
        background: float | Float32Array,
        out: Float32Array,
    ) -> None:
        """`deform` of any images (n, channels, h, w) of a set into `out`, with the same bits.

        `indices` (n,) are their numbers in the set, in any order; consecutive ones are fastest.
        The channels of an image share its map, and may have backgrounds of their own. All arrays
        are on the host; `images` and `out` may have any strides.
        """
        images = np.asarray(images)
        check_shape("images", images, (None, None, None, None), np.float32)
        if not (isinstance(out, np.ndarray) and out.flags.behaved):
            raise InputError("out: expected an aligned array that can be written to")
        check_shape("out", out, images.shape, np.float32)
        check_sides(*images.shape[2:])
        check_place(epoch, 0, len(images))
        if isinstance(background, np.ndarray):
            backgrounds = check_array("background", background, images.shape[1:2])
        else:
            check_real("background", background)
            backgrounds = np.full(images.shape[1], background, np.float32)
        indices = check_indices(indices, len(images))
        affine = check_array("affine", affine, (len(images), 2, 2))
        check_finite("affine", affine)
        fields = self._epoch_fields(taps, alpha, seed, epoch)
        if out.size:
            images, affine = (Deforming._unaliased(self, array, out) for array in (images, affine))
            self._deform_selected(images, affine, fields, indices, backgrounds, out)

    def _deform_selected(
        self,
        images: Float32Array,
        affine: Float32Array,
        fields: EpochFields,
        indices: AnyArray,
        backgrounds: Float32Array,
        out: Float32Array,
    ) -> None:
        """See `deform_selected`; `backgrounds` are those of the channels.

        This is a plain body: consecutive images together.
        """
        ascending = np.argsort(indices, kind="stable")
        gaps = np.flatnonzero(np.diff(indices[ascending]) != 1) + 1
        for run in np.split(ascending, gaps):
            first, matrices = int(indices[run[0]]), self.put(affine[run])
            for channel, background in enumerate(backgrounds.tolist()):
                plane = self.put(np.ascontiguousarray(images[run, channel]))
                result = self._output(None, plane.shape)
                job = Deformation(plane, matrices, background, result, fields, first)
                self._deform(job)
                out[run, channel] = np.asarray(result)

    def fields(
        self,
        height: int,
        width: int,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        indices: ArrayLike,
    ) -> Float32Array:
        """The tiles (n, 2, h, w) of the displacement fields that images with these indices get.

        A grid's field is alpha * (G * noise). The noise is that of `mlpcore.philox.noise`, for x
        and then y: a number for each cell of cell x cell pixels. `taps` (cell, n_taps) are the
        weights of the one-dimensional Gaussian; G is their outer product. Pixel cell * r + p, down
        or across, has the weights taps[p], from the noise r and on.
        """
        check_sides(height, width)
        check_place(epoch, 0, 0)
        indices = check_indices(indices)
        return self._fields(height, width, self._epoch_fields(taps, alpha, seed, epoch), indices)

    def _fields(
        self, height: int, width: int, fields: EpochFields, indices: AnyArray
    ) -> Float32Array:
        """See `fields`. This is a plain body: from the fields of whole grids."""
        result = np.empty((len(indices), 2, height, width), np.float32)
        grids, tiles = np.divmod(indices, IMAGES_PER_GRID)
        for grid in np.unique(grids):
            field = self._grid_field(height, width, fields, int(grid))
            for i in np.flatnonzero(grids == grid):
                top, left = tiles[i] // GRID * height, tiles[i] % GRID * width
                result[i] = field[:, top : top + height, left : left + width]
        return result

    def _grid_field(self, height: int, width: int, fields: EpochFields, grid: int) -> Float32Array:
        """The field (2, 10 h, 10 w) of a grid of images, of a backend without a `_fields`."""
        raise NotImplementedError
