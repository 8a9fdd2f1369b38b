"""From pictures and arrays to the images that a network takes."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from mlpcore.data import dataset
from mlpcore.data.arrays import odd_sided
from mlpcore.data.digit import SIDE, find_digit
from mlpcore.data.pictures import grey_of, picture_files, read_grey
from mlpcore.data.scaling import normalise, resize
from mlpcore.errors import InputError, shown
from mlpcore.store.inputs import NetworkInput
from mlpcore.typing import AnyArray, Float32Array, UInt8Array

COLOURS = (3, 4)
"""Channels of a colour picture, without and with opacity."""


class Inputs(NamedTuple):
    """Samples for networks.

    Attributes
    ----------
    values : ndarray of float32, shape (n, n_inputs)
    in_range : bool
        Whether they are the networks' own inputs. Else they are images in [-1, 1].
    """

    values: Float32Array
    in_range: bool = False

    def of(self, network_input: NetworkInput) -> Float32Array:
        """The inputs of one of the networks."""
        return self.values if self.in_range else network_input.of_images(self.values)


def as_path(value: object, what: str) -> Path:
    """A path that a user named, ``~`` expanded; an InputError if it is none."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        found = (
            repr(value) if isinstance(value, str) else f"an object of type {type(value).__name__}"
        )
        raise InputError(f"{found}: expected {what}")
    return Path(os.path.expanduser(os.fsdecode(value)))


def read_inputs(x: object, network_input: NetworkInput) -> Inputs:
    """Samples from anything that `TrainedClassifier.outputs` takes.

    Raises
    ------
    InputError
        When `x` is none of it, a picture cannot be read, or the network takes other images.
    """
    if isinstance(x, (str, os.PathLike, Image.Image)):
        x = [x]
    if isinstance(x, (list, tuple)) and any(
        isinstance(each, (str, os.PathLike, Image.Image)) for each in x
    ):
        pixels = [_normalised(*pair, network_input) for each in x for pair in _pictures(each)]
        return _flat(_scaled(np.stack(pixels), network_input))
    array = _array(x)
    if network_input.value_range:
        low, high = network_input.value_range
        if _is_of_data(array, network_input, low):
            return _flat(_scaled_values(array, network_input, low, high))
    if array.dtype.kind == "f":
        return _real_inputs(array, network_input)
    return _flat(_scaled_pixels(array, network_input))


def _array(x: object) -> AnyArray:
    """An array of integers or of real numbers."""
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):  # nested lists of different lengths, tensors on a device
        raise InputError(f"{type(x).__name__}: expected pictures or an array of numbers") from None
    if array.dtype.kind not in "uif":
        raise InputError(f"an array of {array.dtype}: expected pictures or an array of numbers")
    return array


def _pictures(x: object) -> Iterator[tuple[AnyArray, str]]:
    """The brightness of each picture, with its name for messages."""
    if isinstance(x, Image.Image):
        yield grey_of(x, "the picture"), "the picture"
        return
    path = as_path(x, "a picture, or a folder of pictures")
    for each in picture_files(path) if path.is_dir() else [path]:
        yield read_grey(each), shown(each)


def _normalised(grey: AnyArray, name: str, network_input: NetworkInput) -> UInt8Array:
    """A picture's digit in MNIST's format, (28, 28); a warning if there seem to be several."""
    check_takes_digits(network_input, name)
    digit = find_digit(grey, name)
    if digit.n_seen > 1:
        warnings.warn(several_digits(name, digit.n_seen), stacklevel=2)
    return digit.pixels


def check_takes_digits(network_input: NetworkInput, name: str) -> None:
    """Raise InputError unless a network takes images in the format of MNIST's."""
    if not network_input.is_mnist:
        height, width = network_input.image_shape
        raise InputError(
            f"{name}: a network for images of {height} x {width} pixels takes arrays alone, "
            "expected one for 29 x 29, to which digits in MNIST's format are scaled"
        )


def several_digits(name: str, n_seen: int) -> str:
    """The line that warns of a picture with several digits."""
    return f"{name} seems to show {n_seen} digits side by side: expected one"


def _is_of_data(array: AnyArray, network_input: NetworkInput, low: float) -> bool:
    """Whether an array is like those that the data of a network came from, with values from `low`.

    Its shape decides. If a `Dataset` kept the shape, real numbers in rows are inputs, and images
    with negative values are a `Dataset`'s where the data had none.
    """
    shape = network_input.pixel_shape
    if array.dtype.kind == "f" and shape == network_input.image_shape:
        rows = array.ndim == 2 and array.shape != shape
        if rows or (array.size and array.min() < 0 <= low):
            return False
    return array.shape == shape or array.shape[1:] in (shape, (math.prod(shape),))


def _scaled_values(
    array: AnyArray, network_input: NetworkInput, low: float, high: float
) -> Float32Array:
    """Images in [-1, 1] from values low to high, as `Dataset.from_arrays` makes them.

    Values may lie beyond, as in a test set, but not by as much as the range is wide.
    """
    if not np.isfinite(array).all():
        raise InputError("the images are not all finite: expected numbers")
    if array.size and not (2 * low - high <= array.min() and array.max() <= 2 * high - low):
        raise InputError(
            f"images from {array.min():g} to {array.max():g}: expected {low:g} to {high:g}, as "
            "the training images"
        )
    return odd_sided(array.reshape(-1, *network_input.pixel_shape), low, high)


def _real_inputs(array: AnyArray, network_input: NetworkInput) -> Inputs:
    """Inputs (n, n_inputs), or images (n, h, w) in [-1, 1] as a `Dataset` holds them."""
    height, width = shape = network_input.image_shape
    if not np.isfinite(array).all():
        raise InputError("the inputs are not all finite: expected numbers")
    values = array.astype(np.float32, copy=False)
    if array.shape == shape or array.shape[1:] == shape:
        if array.size and not (-1 <= array.min() < 0 and array.max() <= 1):
            raise InputError(
                f"images from {array.min():g} to {array.max():g}: expected -1 (the ground) to 1, "
                "or grey values as integers"
            )
        return Inputs(values.reshape(-1, height * width))
    if array.ndim != 2 or array.shape[1] != height * width:
        raise InputError(
            f"real numbers of shape {array.shape}: expected inputs (n, {height * width}) or images "
            f"(n, {height}, {width}); grey values 0 to 255 are expected as integers"
        )
    if network_input.input_range == "unit" and array.size and array.min() < 0:
        raise InputError(f"inputs from {array.min():g}: expected 0 to 1, the network's range")
    return Inputs(values, in_range=True)


def _scaled_pixels(array: AnyArray, network_input: NetworkInput) -> Float32Array:
    """Images in [-1, 1] from grey values (h, w), (n, h, w) or (n, h w), or colours."""
    if array.size and not (array.min() >= 0 and array.max() <= 255):
        raise InputError(f"grey values from {array.min()} to {array.max()}: expected 0 to 255")
    height, width = shape = network_input.pixel_shape
    if array.ndim in (3, 4) and array.shape[-1] in COLOURS and array.shape[-2:] != shape:
        colours = array if array.ndim == 4 else array[None]
        found = [Image.fromarray(each.astype(np.uint8)) for each in colours]
        greys: list[AnyArray] = [grey_of(each, "the picture") for each in found]
    elif array.ndim == 2 and array.shape[1] == height * width:
        return _scaled(array.reshape(-1, height, width), network_input)
    elif array.ndim in (2, 3):
        pixels = array if array.ndim == 3 else array[None]
        sides = pixels.shape[1:]
        if sides == shape or (sides == (SIDE, SIDE) and network_input.is_mnist):
            return _scaled(pixels, network_input)
        greys = list(pixels)
    else:
        raise InputError(f"grey values of shape {array.shape}: expected (h, w) or (n, h, w)")
    names = [f"picture {number}" for number in range(1, len(greys) + 1)]
    digits = [_normalised(*pair, network_input) for pair in zip(greys, names)]
    return _scaled(np.array(digits, np.uint8).reshape(-1, SIDE, SIDE), network_input)


def _scaled(pixels: AnyArray, network_input: NetworkInput) -> Float32Array:
    """Images (n, H, W) in [-1, 1] from grey values (n, h, w), as `Dataset` makes them."""
    box, white = slice(None), 255
    if network_input.is_embedded and pixels.shape[1:] == network_input.pixel_shape:
        box, white = dataset.EMBEDDED_BOX, network_input.white
        if pixels.size and pixels.max() > white:
            raise InputError(f"grey values up to {pixels.max()}: expected 0 to {white}")
        pixels = pixels * (255 / white)
    images = np.full((len(pixels), *network_input.image_shape), dataset.BACKGROUND, np.float32)
    target = images[:, box, box]
    target[...] = resize(normalise(pixels), *target.shape[1:])
    return images


def _flat(images: Float32Array) -> Inputs:
    n, height, width = images.shape
    return Inputs(images.reshape(n, height * width))
