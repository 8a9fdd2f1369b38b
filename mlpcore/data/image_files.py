"""Pictures from files of any origin as arrays of brightness.

Pillow decodes the files. This module limits what they may be: the kind by a short list, because
some of Pillow's decoders start other programs; the length; the number of pixels that the header
announces; and the time, because a short file can keep a decoder busy for minutes.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from mlpcore.errors import InputError, one_line, shown
from mlpcore.files import explained, read_start
from mlpcore.typing import AnyArray, Float32Array, StrPath, UInt8Array

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
EXPECTED = "expected one picture as PNG, JPEG, GIF, BMP, TIFF, WebP or PPM"

#: What people have instead: where a mark is in the file, what the file is, and what converts it.
FOREIGN = (
    (4, b"ftyp", "a HEIC or AVIF picture", "heif-convert in.heic out.png"),
    (0, b"%PDF", "a PDF document", "pdftoppm -png -r 300 in.pdf page"),
)

#: How the names of such files end.
SUFFIXES = ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"

MAX_FILE_BYTES = 2**26
MAX_PIXELS = 2**26  # 67 million: the cameras of phones have 50 million
MAX_PAGES = 2000  # each is found from the first

#: Seconds of the processor that a decoder may take, and how many bytes it gets at once. The largest
#: pictures take about one second.
MAX_SECONDS, BLOCK_BYTES = 3.0, 2**12

#: To about so many pixels a side pictures of one digit are reduced.
REDUCED_SIDE = 1024

#: Where a picture comes from.
Source: TypeAlias = StrPath | Image.Image | BinaryIO

#: One thread at a time redirects the standard error.
_STDERR_LOCK = threading.Lock()

# Without a handler, Pillow's remarks on odd files would reach the user's terminal.
logging.getLogger("PIL").addHandler(logging.NullHandler())


def picture_files(folder: StrPath) -> list[Path]:
    """The files in a folder whose names end like those of pictures, sorted by name.

    Hidden files and the folders inside are left out. An InputError when it cannot be read.
    """
    with explained("read the folder", folder):
        paths = sorted(Path(folder).iterdir())
    pictures = [path for path in paths if path.suffix.lower() in SUFFIXES]
    return [path for path in pictures if not path.name.startswith(".") and not path.is_dir()]


class Picture(NamedTuple):
    """A picture, turned as the camera was held."""

    grey: UInt8Array  #: (h, w), its brightness, 0 for black to 255 for white
    name: str  #: for messages
    scale: float  #: how many of the file's pixels one of `grey` stands for, along a side


def read_picture(source: Source, side: int = REDUCED_SIDE, page: int | None = None) -> Picture:
    """Read a picture from a file, an open binary file or one of Pillow's images.

    Transparent areas become dark or light, whichever their picture was drawn for.

    Parameters
    ----------
    source
        A path, an object with `read`, or an image.
    side
        A larger picture is reduced by a whole factor, to fewer than twice as many pixels a side.
    page
        The number, from 1, of one of several pictures.

    Raises
    ------
    InputError
        When the file cannot be read, is too long, is no picture of a known kind, is damaged,
        holds several pictures and none is named, or has too many pixels.
    """
    if isinstance(source, Image.Image):
        name, longest = "the picture", max(source.size)
        with _refusing(name), contextlib.ExitStack() as stack:
            stack.callback(source.seek, source.tell())
            _check(source, page)
            grey = _brightness(ImageOps.exif_transpose(source), side)
    else:
        content, name = _content(source)
        with _refusing(name):
            grey, longest = _decode(content, side, page)
    if grey.dtype != np.uint8:
        grey = np.rint(grey).astype(np.uint8)
    return Picture(grey, name, longest / max(grey.shape))


def count_pages(path: StrPath) -> int:
    """The pages of a TIFF file; 1 for one of another name, and for one that cannot be read.

    An InputError when there are too many.
    """
    if Path(path).suffix.lower() not in (".tif", ".tiff"):
        return 1
    try:
        content, name = _content(path)
        with _refusing(name), Image.open(_Timed(content), formats=["TIFF"]) as image:
            for n in range(1, MAX_PAGES + 1):
                try:
                    image.seek(n)
                except EOFError:
                    return n
    except InputError:
        return 1
    raise InputError(f"{name} holds more than {MAX_PAGES:,} pages: expected fewer")


def _content(source: StrPath | BinaryIO) -> tuple[bytes, str]:
    """The bytes of a file, and its name."""
    if isinstance(source, (str, os.PathLike)):
        name = shown(source)
        try:
            content, size = read_start(source, MAX_FILE_BYTES)
        except InputError as error:
            raise InputError(f"{error}, {EXPECTED}") from None
    else:
        name = "the standard input" if source is sys.stdin.buffer else "the file"
        content = source.read(MAX_FILE_BYTES + 1)
        size = len(content)
    if size > MAX_FILE_BYTES:
        raise InputError(f"{name} has more than {MAX_FILE_BYTES:,} bytes: expected fewer")
    return content, name


@contextlib.contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Turn what Pillow raises for a picture into an InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except InputError as error:
        raise InputError(f"{name} {error}") from None
    except UnidentifiedImageError:
        raise InputError(f"{name} is not a picture of a known kind, {EXPECTED}") from None
    except Image.DecompressionBombError:  # of more than twice as many as `MAX_PIXELS`
        raise InputError(f"{name} {_too_large('far more')}") from None
    except MemoryError:
        raise
    except _Slow:
        raise InputError(
            f"{name} keeps its decoder busy for more than {MAX_SECONDS:g} seconds, {EXPECTED}"
        ) from None
    except Exception as error:  # Pillow's decoders raise almost anything for damaged files
        reason = one_line(error) or type(error).__name__
        raise InputError(f"{name} is damaged ({reason[:200]}), {EXPECTED}") from None


class _Timed(io.BytesIO):
    """The bytes of a file for a decoder, until this has taken too long."""

    def __init__(self, content: bytes):
        super().__init__(content)
        self._end = time.thread_time() + MAX_SECONDS

    def read(self, size: int | None = -1, /) -> bytes:
        if time.thread_time() > self._end:
            raise _Slow
        return super().read(size)


class _Slow(Exception):
    """A decoder has taken too long."""


def _decode(content: bytes, side: int, page: int | None) -> tuple[AnyArray, int]:
    """The brightness of a picture in the bytes of a file, and the longer side that it has there.

    It raises an InputError, or whatever the decoders raise.
    """
    for place, mark, kind, command in FOREIGN:
        if content[place : place + len(mark)] == mark:
            raise InputError(f"is {kind}: expected PNG or JPEG, as from {command}")
    with contextlib.ExitStack() as stack:
        image = stack.enter_context(Image.open(_Timed(content), formats=FORMATS))
        _check(image, page)
        if image.format == "TIFF":
            stack.enter_context(_silent_libtiff())
        if isinstance(image, ImageFile.ImageFile):
            image.decodermaxblock = BLOCK_BYTES  # a decoder of JPEG takes all it is given at once
        longest = max(image.size)
        image.draft("L", (side, side))  # a JPEG need not be decoded in full
        ImageOps.exif_transpose(image, in_place=True)
        return _brightness(image, side), longest


@contextlib.contextmanager
def _silent_libtiff() -> Iterator[None]:
    """Let the standard error lead nowhere: libtiff writes to it what it finds odd in a file."""
    with _STDERR_LOCK, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without a standard error there is nothing to hide
            kept = os.dup(2)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 2)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)
        yield


def _check(image: Image.Image, page: int | None) -> None:
    """Check what the header of a picture, or of its page, announces, before it is decoded."""
    if page is not None:
        try:
            image.seek(page - 1)
        except EOFError:
            raise InputError(f"holds fewer than {page} pages: expected one of them") from None
    # Cameras put a second picture, such as the depth of the first, into a JPEG file (MPO).
    elif getattr(image, "is_animated", False) and image.format != "MPO":
        raise InputError(f"holds several pictures, {EXPECTED}")
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise InputError(_too_large(f"{width:,} x {height:,}"))


def _too_large(found: str) -> str:
    return f"is too large: {found} pixels, expected at most {MAX_PIXELS:,} in all"


def _brightness(image: Image.Image, side: int) -> AnyArray:
    """Return the brightness of a picture in any of Pillow's modes, 0 to 255."""
    if image.mode.startswith(("I", "F")):  # more than 8 bits, or real numbers
        values = np.asarray(image, np.float32)
        if not np.isfinite(values).all():
            raise InputError(f"holds values that are not finite, {EXPECTED}")
        # White is the first of these that no value exceeds.
        whites = *((1, 255) if image.mode == "F" else ()), 2**16 - 1, float(values.max())
        white = next(each for each in whites if values.max() <= each)
        values = np.asarray(_reduced(Image.fromarray(values), side))
        return np.clip(values * np.float32(255 / white), 0, 255)
    if not image.has_transparency_data:
        return np.asarray(_reduced(image.convert("L"), side))
    image = _reduced(image.convert("RGBA"), side)
    grey = np.asarray(image.convert("RGB").convert("L"), np.float32)
    opacity = np.asarray(image.getchannel("A"), np.float32) / np.float32(255)
    return opacity * grey + (1 - opacity) * np.float32(_backdrop(grey, opacity))


def _reduced(image: Image.Image, side: int) -> Image.Image:
    """Reduce a large picture by a whole factor."""
    return image.reduce(max(1, max(image.size) // side))


def _backdrop(grey: Float32Array, opacity: Float32Array) -> float:
    """Return the brightness to put behind a picture: that of its paper, or unlike its ink."""
    opaque = opacity > 0.5
    if np.mean(opaque) > 0.5:
        return float(np.median(grey[opaque]))
    return 255.0 if np.sum(grey * opacity) < 127.5 * np.sum(opacity) else 0.0
