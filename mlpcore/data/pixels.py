"""Pixels, of the size and the values of a file, as float32 images and as inputs of a network.

One record says how, for data, networks, ONNX and the page.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from msgspec import Meta

from mlpcore.checks import NUMBERS, Record, convert_fields
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array

InputRange: TypeAlias = Literal["signed", "unit"]
"""Of a network's inputs: [-1, 1], the paper's, or [0, 1]."""

#: The values of bytes, which become the two ends of a range.
BYTES = 0.0, 255.0

#: This many images are searched at a time for the greatest value.
SCANNED = 4096

BACKGROUNDS = {"signed": -1.0, "unit": 0.0}
"""What a pixel of value 0 becomes in each range. White becomes 1."""

#: Longest side of an image. With larger ones the first layer of the paper's smallest network would
#: have more than 10^9 weights.
MAX_SIDE = 1024

_BATCH_PIXELS = 2**18  # about so many pixels are converted at a time, which the cache holds

Side: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_SIDE + 1)]

#: What floats and booleans range over from black to white, as bytes do from 0 to 255.
_BLACK_TO_WHITE = (0.0, 1.0), (-1.0, 1.0)


class PixelSpec(Record, frozen=True):
    """The mapping of pixels to images, and of these to the inputs of a network.

    Attributes
    ----------
    image_shape
        Height and width of the images, which are the inputs, row by row.
    pixel_shape
        Height and width of the pictures in files or arrays, which are scaled to the images.
    value_range
        The values of pixels that become the two ends of the range of inputs: the background's
        first, so 255 and 0 where dark ink is on a light ground.
    whole
        Whether pixels are whole numbers within that range, as bytes are. Others are real numbers.
        They may lie beyond it by its width, or by a quarter of that for 0 ... 1 and -1 ... 1.
    margin
        Pixels of background around the scaled picture.
    input_range
        The range of the inputs: "signed" is [-1, 1], "unit" is [0, 1].

    Raises
    ------
    InputError
        When a value is not of its type or out of range.
    """

    image_shape: tuple[Side, Side]
    pixel_shape: tuple[Side, Side]
    value_range: tuple[float, float] = BYTES
    whole: bool = True
    margin: Annotated[int, Meta(ge=0)] = 0
    input_range: InputRange = "signed"

    def __post_init__(self) -> None:
        convert_fields(self)
        check_range(self.value_range, "value_range")
        if 2 * self.margin + 2 > min(self.image_shape) and self.margin:
            raise InputError(f"margin {self.margin}: expected less than half of the image's side")

    @property
    def dtype(self) -> type[np.generic]:
        """The type that holds the pixels: uint8, float32, or float64 if float32 is too coarse."""
        if self.whole:
            return np.uint8
        low, high = sorted(self.value_range)
        width = high - low
        # A rounding of float32 is then at most 2^-23 of the range.
        is_fine = max(-low, high) <= 2 * width and 1e-30 < width < 1e30
        return np.float32 if is_fine else np.float64

    @property
    def values_of_bytes(self) -> Float32Array:
        """The value in [-1, 1] of each of the 256 bytes, for pixels that are bytes."""
        return scale(np.arange(256, dtype=np.uint8), *self.value_range)

    @property
    def inputs_of_bytes(self) -> Float32Array:
        """The value of each of the 256 bytes in the range of the inputs."""
        return to_range(self.values_of_bytes, self.input_range)

    def check(self, pixels: AnyArray, name: str) -> None:
        """Raise InputError unless pixels of any shape have values that these can have."""
        low, high = ends = tuple(sorted(self.value_range))
        if self.whole and pixels.dtype == np.uint8 and ends == BYTES:
            return
        if pixels.dtype.kind not in ("ui" if self.whole else NUMBERS):
            expected = f"whole numbers from {low:g} to {high:g}" if self.whole else "real numbers"
            raise InputError(f"{name} of the type {pixels.dtype}: expected {expected}")
        if not pixels.size:
            return
        least, greatest = pixels.min().item(), pixels.max().item()
        slack = 0 if self.whole else high - low
        if self.value_range in _BLACK_TO_WHITE:
            slack /= 4
        # Floats up to 1 where others reach 15 or more: somebody has scaled them.
        as_black = low == 0 and high >= 15 and 0 < greatest <= 1 and pixels.dtype.kind == "f"
        if as_black or not (low - slack <= least and greatest <= high + slack):
            raise InputError(
                f"{name} from {least:g} to {greatest:g}: expected {low:g} to {high:g}, as in "
                "training"
            )

    def to_images(self, pixels: AnyArray) -> Float32Array:
        """Converts pixels (n, h, w) to images (n, H, W) in [-1, 1], as a `Dataset` holds them.

        It works in batches, which saves memory.
        """
        images = np.full((len(pixels), *self.image_shape), BACKGROUNDS["signed"], np.float32)
        height, width = self.image_shape
        box = images[:, self.margin : height - self.margin, self.margin : width - self.margin]
        for batch in batches(len(pixels), max(height * width, math.prod(self.pixel_shape))):
            part = np.asarray(pixels[batch])  # which may be on disk
            part = scale(part, *self.value_range)
            box[batch] = _interpolate(_interpolate(part, 1, box.shape[1]), 2, box.shape[2])
        return images

    def rescaling(self, other: PixelSpec) -> tuple[float, float]:
        """The factor and the offset that convert the images of another spec to this one's.

        Pixels keep their values, but for ranges that are each the whole of a type, from black to
        white: their pixels show the same although their values differ.
        """
        ends = self.value_range, other.value_range
        if ends[0] == ends[1] or (self._is_black_to_white and other._is_black_to_white):
            return 1.0, 0.0
        (new_low, new_high), (low, high) = ends
        width = new_high - new_low
        return (high - low) / width, (high + low - new_low - new_high) / width

    @property
    def _is_black_to_white(self) -> bool:
        return self.whole or self.value_range in _BLACK_TO_WHITE

    def rescale(self, images: Any, other: PixelSpec) -> Any:
        """Images in [-1, 1] of another spec, converted to this one's scale if it differs.

        They may be such as `Dataset.test_set`.
        """
        factor, summand = self.rescaling(other)
        if (factor, summand) == (1, 0):
            return images
        return (images[:].astype(np.float64) * factor + summand).astype(np.float32)

    def to_inputs(self, images: Float32Array) -> Float32Array:
        """The inputs (n, H W) of a network from images (n, H, W) in [-1, 1] on this scale."""
        return to_range(images, self.input_range).reshape(-1, math.prod(self.image_shape))


def range_of(images: AnyArray, name: str) -> tuple[float, float]:
    """Return the values that become -1 and 1, for images of which nobody has said it.

    uint8 has 0 ... 255, as in IDX files, or, if no value reaches half of that, 0 ... the greatest,
    as for tables of 0 and 1. bool has 0 ... 1. Floats within 0 ... 1 or -1 ... 1 have that range.
    Others have the least value, or 0 if that is less, and the greatest.
    """
    if images.dtype == np.uint8:
        greatest = 0
        for begin in range(0, len(images), SCANNED):  # most data need only the first
            greatest = max(greatest, np.max(images[begin : begin + SCANNED]).item())
            if greatest > BYTES[1] / 2:
                return BYTES
        return (0.0, float(greatest)) if greatest else BYTES
    low, high = images.min().item(), images.max().item()
    if images.dtype.kind == "b":
        return 0.0, 1.0
    if images.dtype.kind == "f" and low >= -1 and high <= 1:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    return check_range((min(low, 0), high), f"{name}: range of values")


def check_range(value: Any, name: str) -> tuple[float, float]:
    """Check that a range has two different, finite ends."""
    try:
        low, high = map(float, value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} {value!r}: expected two numbers") from None
    if not sys.float_info.min <= abs(high - low) <= sys.float_info.max:  # what can divide values
        raise InputError(f"{name} {low:g} to {high:g}: expected two different, finite numbers")
    return low, high


def scale(values: AnyArray, low: float, high: float) -> Float32Array:
    """Values in which `low` becomes -1 and `high` becomes 1; those in [-1, 1] keep their bits."""
    if (low, high) == (-1, 1):
        return values.astype(np.float32)
    # In float64 up to here: bytes and other numbers of their values get the same bits.
    result = ((values - np.float64(low)) / ((high - low) / 2)).astype(np.float32)
    result -= np.float32(1)
    return result


def to_range(images: Float32Array, input_range: InputRange) -> Float32Array:
    """Images in [-1, 1] as inputs: signed ones stay, and unit ones are (x + 1) / 2."""
    if input_range == "signed":
        return images
    result = images + np.float32(1)
    result /= np.float32(2)
    return result


def batches(n_images: int, pixels_per_image: int) -> Iterator[slice]:
    """Yield slices of `n_images`, each small enough for temporary copies."""
    step = max(1, _BATCH_PIXELS // pixels_per_image)
    for start in range(0, n_images, step):
        yield slice(start, start + step)


def _interpolate(images: Float32Array, axis: int, n_out: int) -> Float32Array:
    """Resize one axis of float32 images (n, h, w) linearly, with aligned corners.

    Pixel t of a side of n_out pixels shows the source at ``t * (n_in - 1) / (n_out - 1)``.
    Corners stay corners, and the centre stays the centre. Corners and flat areas keep their exact
    values. No value leaves the range of its neighbours. `images` are returned if the size stays.
    """
    n_in = images.shape[axis]
    if n_in == n_out:
        return images
    # Integers are exact, so that the last position is the last pixel and not beside it.
    low, rest = np.divmod(np.arange(n_out) * (n_in - 1), n_out - 1)
    fraction = (rest / (n_out - 1)).astype(np.float32)
    start = images.take(low, axis)
    result = images.take(np.minimum(low + 1, n_in - 1), axis)
    # Unlike a weighted sum, start + fraction * (end - start) keeps flat areas exactly.
    result -= start
    result *= fraction[:, None] if axis == 1 else fraction
    result += start
    return result


#: MNIST's format, to which digits in pictures are brought, and that of scikit-learn's digits.
#: MNIST's fill 20 x 20 of 28 x 28 pixels, and deformations need the margin.
MNIST_PIXELS = PixelSpec((29, 29), (28, 28))
DIGITS_PIXELS = PixelSpec((29, 29), (8, 8), (0.0, 16.0), margin=4)
