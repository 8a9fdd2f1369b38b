"""From what a user has to the images of networks: pictures, or arrays as those of the training."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from mlpcore.checks import real_array
from mlpcore.data.class_folders import pictures_in
from mlpcore.data.dataset import MNIST
from mlpcore.data.image_files import Source, read_picture
from mlpcore.data.pixels import MNIST_PIXELS, PixelSpec
from mlpcore.errors import InputError, PictureWarning, brief
from mlpcore.store.trained import TrainedNetwork
from mlpcore.typing import AnyArray, Float32Array

if TYPE_CHECKING:
    from mlpcore.data.digit import Digit

#: The border of a digit of MNIST is never so light on the average.
LIGHT = 127

#: What is searched for a digit. Anything else is an array.
PICTURES = str, os.PathLike, Image.Image, io.IOBase


def as_path(value: object, what: str) -> Path:
    """A path that a user named, ``~`` expanded; an InputError if it is none."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise InputError(f"{brief(value)}: expected {what}")
    return Path(os.path.expanduser(os.fsdecode(value)))


def path_or_image(value: object, what: str) -> Source:
    """A picture that a user named or gave; an InputError if it is none."""
    return value if isinstance(value, (Image.Image, io.IOBase)) else as_path(value, what)  # type: ignore[return-value]


def are_pictures(values: object) -> bool:
    """Tell if `TrainedClassifier.predict` searches these for digits. Anything else is an array."""
    several = values if isinstance(values, (list, tuple)) else [values]
    return any(isinstance(each, PICTURES) for each in several)


def find_digits(pictures: object, pixels: PixelSpec) -> list[Digit]:
    """The digits in a picture, a folder of pictures, or a list of these.

    An InputError when a picture cannot be read or shows no digit, or the network takes other ones.
    """
    from mlpcore.data.digit import find_digit  # and with it OpenCV

    check_takes_digits(pixels, "pictures")
    several = pictures if isinstance(pictures, (list, tuple)) else [pictures]
    found = []
    for each in several:
        source = path_or_image(each, "a picture, or a folder of pictures")
        sources: list[Source] = [source]
        if isinstance(source, Path) and source.is_dir():
            sources = [*pictures_in(source)]
        found += [find_digit(one.grey, one.name) for one in map(read_picture, sources)]
    return found


def takes_digits(pixels: PixelSpec) -> bool:
    """Tell if a network takes images in the format of MNIST's."""
    return pixels.image_shape == MNIST_PIXELS.image_shape


def check_takes_digits(pixels: PixelSpec, name: str) -> None:
    """Raise InputError unless a network takes images in the format of MNIST's."""
    if not takes_digits(pixels):
        height, width = pixels.image_shape
        raise InputError(
            f"{name}: a network for images of {height} x {width} pixels takes arrays alone, "
            "expected one for 29 x 29, to which digits in MNIST's format are scaled"
        )


def images_of_pixels(values: object, trained: TrainedNetwork, stacklevel: int) -> Float32Array:
    """Images of arrays that have the shape and the values of the arrays of the training.

    `stacklevel` is that of `warnings.warn` in this function: it tells whose line a warning names.
    """
    pixels: AnyArray = real_array("pixels", values)
    height, width = shape = trained.pixels.pixel_shape
    if pixels.shape != shape and pixels.shape[1:] not in (shape, (height * width,)):
        raise InputError(
            f"{type(values).__name__} of shape {pixels.shape}: expected pixels (n, {height}, "
            f"{width}) as in training; a photograph is expected as a file or as "
            "PIL.Image.fromarray(array), and images of a Dataset by predict_images"
        )
    trained.pixels.check(pixels, "pixels")
    pixels = pixels.reshape(-1, height, width)
    if trained.data_name == MNIST:  # whose networks cannot read dark ink on light ground
        border = np.ones(shape, bool)
        border[1:-1, 1:-1] = False
        if n := np.count_nonzero(pixels[:, border].mean(axis=1) > LIGHT):
            text = (
                f"{n:,} of {len(pixels):,} arrays with a light border: expected 0 for the "
                "background and 255 for the ink; PIL.Image.fromarray(array) is read either way"
            )
            warnings.warn(text, PictureWarning, stacklevel=stacklevel)
    return trained.pixels.to_images(pixels)
