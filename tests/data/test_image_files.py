"""Picture files: every kind is read, everything else is refused on one line in little memory."""

import contextlib
import io
import os
import struct

import numpy as np
import pytest
from PIL import Image

import pictures
from mlpcore import InputError
from mlpcore.data.digit import find_digit
from mlpcore.data.image_files import MAX_FILE_BYTES, MAX_PIXELS, REDUCED_SIDE, read_picture
from mlpcore.errors import shown
from pictures import DIGITS, difference_nearby, encoded
from small_runs import refusal

INK = pictures.as_bytes(pictures.enlarged(DIGITS[5]))
GREY = pictures.as_bytes(pictures.written(INK.astype(float)))
SIDE = len(GREY)
IMAGE = Image.fromarray(GREY)
ROUND = Image.fromarray(np.uint8(255 * (np.hypot(*(np.mgrid[:SIDE, :SIDE] - 55.5)) <= 61)))
DARK, LIGHT = (Image.new("L", IMAGE.size, value) for value in (0, 255))
SECOND = {"save_all": True, "append_images": [Image.new("L", (20, 20))]}
KINDS = {
    "grey": (IMAGE, "PNG"),
    "palette": (IMAGE.convert("P"), "GIF"),
    "opaque": (IMAGE.convert("RGBA"), "PNG"),
    "cut out": (Image.merge("LA", [Image.composite(IMAGE, DARK, ROUND), ROUND]), "PNG"),
    "dark on nothing": (Image.merge("LA", [DARK, Image.fromarray(INK)]), "PNG"),
    "light on nothing": (Image.merge("LA", [LIGHT, Image.fromarray(INK)]), "PNG"),
    "16 bits": (Image.fromarray(GREY.astype(np.uint16) * 257), "PNG"),
    "32 bits": (Image.fromarray(GREY.astype(np.int32) * 2**23), "TIFF"),
    "real numbers": (Image.fromarray(GREY.astype(np.float32) / 255), "TIFF"),
    "four inks": (IMAGE.convert("CMYK"), "JPEG"),
    "BMP": (IMAGE, "BMP"),
    "PPM": (IMAGE, "PPM"),
    "WebP": (IMAGE.convert("RGB"), "WEBP"),
    "large": (IMAGE.resize((3000, 3000), Image.Resampling.BICUBIC), "PNG"),
    "large JPEG": (IMAGE.resize((3000, 3000), Image.Resampling.BICUBIC), "JPEG"),
    "camera with a second picture": (IMAGE, "MPO"),
}


@pytest.mark.parametrize("name", list(KINDS))
def test_every_kind_of_picture(name, tmp_path):
    image, kind = KINDS[name]
    path = tmp_path / "picture"
    path.write_bytes(encoded(image, kind, quality=95, **(SECOND if kind == "MPO" else {})))
    grey = read_picture(path).grey
    assert max(grey.shape) < 2 * REDUCED_SIDE
    # Lossy files, and inks without paper whose contrast is another, differ a little.
    assert difference_nearby(find_digit(grey).pixels, find_digit(GREY).pixels) < 0.1


def test_a_camera_held_otherwise(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # shown after a quarter turn clockwise
    upright, path = GREY[:, :90], tmp_path / "photo.png"
    stored = Image.fromarray(np.ascontiguousarray(np.rot90(upright)))
    path.write_bytes(encoded(stored, exif=exif))
    assert np.array_equal(read_picture(path).grey, upright)


NOT_FINITE = np.where(GREY < 255, GREY.astype(np.float32), 0)
NOT_FINITE[3, 3] = np.nan
BOMBS = {
    "far beyond Pillow's limit": b"P6 90000 90000 255\n" + bytes(10**5),
    "beyond Pillow's limit": b"P5 10000 10000 255\n",
    "just beyond ours": b"P5 %d 1024 255\n" % (MAX_PIXELS // 1024 + 1),
}
REFUSED = {
    "two in a GIF": encoded(IMAGE, "GIF", **SECOND),
    "not finite": encoded(Image.fromarray(NOT_FINITE), "TIFF"),
}
UNKNOWN = {
    "EPS, whose decoder starts programs": encoded(IMAGE, "EPS"),
    "text": b"a digit",
}


def check_refused(path):
    message = refusal(lambda: find_digit(*read_picture(path)[:2]))
    assert shown(path) in message and "expected" in message and message.isprintable()
    return message


@pytest.mark.parametrize("name", [*BOMBS, *REFUSED, *UNKNOWN])
def test_what_is_refused(name, tmp_path):
    path = tmp_path / "line\nfeed"
    path.write_bytes({**BOMBS, **REFUSED, **UNKNOWN}[name])
    message = check_refused(path)
    assert ("known kind" in message) == (name in UNKNOWN)  # before it is decoded
    assert ("is too large" in message) == (name in BOMBS)


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").touch()
    os.truncate(tmp_path / "long", MAX_FILE_BYTES + 1)  # takes no room on the disk
    for name in ("missing", "", "pipe", "long", "a\0b"):
        check_refused(tmp_path / name)


def test_libtiff_does_not_write_to_the_terminal(capfd):
    """Not even of a directory whose entries, one after another, are of no known type."""
    content = encoded(GREY, "TIFF", compression="tiff_adobe_deflate")
    begin = struct.unpack("<I", content[4:8])[0]
    (n_entries,) = struct.unpack("<H", content[begin : begin + 2])
    for place in range(begin + 2, begin + 2 + 12 * n_entries, 12):
        with contextlib.suppress(InputError):
            read_picture(io.BytesIO(content[: place + 2] + b"\xff\xff" + content[place + 4 :]))
    os.write(2, b"still there\n")
    assert capfd.readouterr().err == "still there\n"
