"""From what a user has to the images of networks: pictures, or arrays as those of the training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from mlpcore.checks import real_array
from mlpcore.data.class_folders import pictures_in
from mlpcore.data.dataset import MNIST
from mlpcore.data.digit import Digit, find_digit, read_digit
from mlpcore.data.pictures import grey_of
from mlpcore.data.pixels import MNIST_PIXELS, PixelSpec
from mlpcore.errors import InputError, PictureWarning
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import AnyArray, Float32Array

#: The border of a digit of MNIST is never so light on the average.
LIGHT = 127

#: What is searched for a digit. Anything else is an array.
PICTURES = str, os.PathLike, Image.Image


def as_path(value: object, what: str) -> Path:
    """A path that a user named, ``~`` expanded; an InputError if it is none."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        found = (
            repr(value) if isinstance(value, str) else f"an object of type {type(value).__name__}"
        )
        raise InputError(f"{found}: expected {what}")
    return Path(os.path.expanduser(os.fsdecode(value)))


def read_images(pictures: object, trained: TrainedNetwork) -> tuple[Float32Array, list[Digit]]:
    """The images (n, H, W) in [-1, 1] of what `TrainedClassifier.predict` takes.

    With them come the digits that were found, if they are of pictures.

    Raises
    ------
    InputError
        When `pictures` is none of it, a picture cannot be read, or the network takes other images.
    """
    if isinstance(pictures, PICTURES):
        pictures = [pictures]
    if not isinstance(pictures, (list, tuple)) or not any(
        isinstance(each, PICTURES) for each in pictures
    ):
        return _images_of_pixels(pictures, trained), []
    check_takes_digits(trained.pixels, "pictures")
    digits = [digit for each in pictures for digit in _digits(each)]
    return np.stack([digit.image for digit in digits]), digits


def _digits(picture: object) -> Iterator[Digit]:
    """The digit in a picture, or those in the pictures of a folder."""
    if isinstance(picture, Image.Image):
        yield find_digit(grey_of(picture, "the picture"), "the picture")
        return
    path = as_path(picture, "a picture, or a folder of pictures")
    yield from map(read_digit, pictures_in(path) if path.is_dir() else [path])


def check_takes_digits(pixels: PixelSpec, name: str) -> None:
    """Raise InputError unless a network takes images in the format of MNIST's."""
    if pixels.image_shape != MNIST_PIXELS.image_shape:
        height, width = pixels.image_shape
        raise InputError(
            f"{name}: a network for images of {height} x {width} pixels takes arrays alone, "
            "expected one for 29 x 29, to which digits in MNIST's format are scaled"
        )


def _images_of_pixels(values: object, trained: TrainedNetwork) -> Float32Array:
    """Images of arrays that have the shape and the values of the arrays of the training."""
    pixels: AnyArray = real_array("pixels", values)
    height, width = shape = trained.pixels.pixel_shape
    if pixels.shape != shape and pixels.shape[1:] not in (shape, (height * width,)):
        raise InputError(
            f"{type(values).__name__} of shape {pixels.shape}: expected pixels (n, {height}, "
            f"{width}) as in the training; a photograph is expected as a file or as "
            "PIL.Image.fromarray(array), and images of a Dataset by predict_images"
        )
    trained.pixels.check(pixels, "pixels")
    pixels = pixels.reshape(-1, height, width)
    if trained.data_name == MNIST:
        _warn_of_light_borders(pixels)
    return trained.pixels.to_images(pixels)


def _warn_of_light_borders(pixels: AnyArray) -> None:
    """Warn of pixels (n, h, w) of dark ink on light ground, which MNIST's networks cannot read."""
    border = np.ones(pixels.shape[1:], bool)
    border[1:-1, 1:-1] = False
    n = np.count_nonzero(pixels[:, border].mean(axis=1) > LIGHT)
    if n:
        text = (
            f"{n:,} of {len(pixels):,} arrays with a light border: expected 0 for the ground and "
            "255 for the ink; PIL.Image.fromarray(array) is read either way"
        )
        warnings.warn(text, PictureWarning, stacklevel=6)  # of who called predict
