"""Picture files: every kind is read, everything else is refused on one line in little memory."""

import contextlib
import io
import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import pictures
from mlpcore import InputError
from mlpcore.data import pictures as picture_files
from mlpcore.data.digit import find_digit, read_digit
from mlpcore.data.pictures import MAX_FILE_BYTES, MAX_PIXELS, read_grey
from mlpcore.errors import shown
from pictures import DIGITS, difference, encoded

INK = pictures.as_bytes(pictures.enlarged(DIGITS[5]))
GREY = pictures.as_bytes(pictures.written(INK.astype(float)))
SIDE = len(GREY)
IMAGE = Image.fromarray(GREY)
ROUND = Image.fromarray(np.uint8(255 * (np.hypot(*(np.mgrid[:SIDE, :SIDE] - 55.5)) <= 61)))
DARK, LIGHT = (Image.new("L", IMAGE.size, value) for value in (0, 255))
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
    second = {"save_all": True, "append_images": [Image.new("L", (20, 20))], "quality": 95}
    path = tmp_path / "picture"
    path.write_bytes(encoded(image, kind, **(second if kind == "MPO" else {})))
    assert max(read_grey(path).shape) < 2 * picture_files.REDUCED_SIDE
    # Lossy files, and inks without paper whose contrast is another, differ a little.
    assert difference(read_digit(path).pixels, find_digit(GREY).pixels) < 0.1


def test_a_camera_held_otherwise(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # shown after a quarter turn clockwise
    upright, path = GREY[:, :90], tmp_path / "photo.png"
    stored = Image.fromarray(np.ascontiguousarray(np.rot90(upright)))
    path.write_bytes(encoded(stored, exif=exif))
    assert np.array_equal(read_grey(path), upright)


def png(width, height):
    """A PNG file of so many pixels according to its header."""

    def chunk(name, content):
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def patched(kind, layout, true, false):
    """A file of 321 x 123 pixels with another size in its header."""
    content = encoded(Image.new("RGB", (321, 123)), kind, lossless=True)
    old, new = struct.pack(layout, *true), struct.pack(layout, *false)
    assert old in content
    return content.replace(old, new, 1)


TWO = {"save_all": True, "append_images": [Image.fromarray(255 - GREY)]}
NOT_FINITE = np.where(GREY < 255, GREY.astype(np.float32), 0)
NOT_FINITE[3, 3] = np.nan
BOMBS = {
    "PNG": png(60_000, 60_000),
    "PNG beyond Pillow's limits": png(2**31 - 1, 2**31 - 1),
    "PNG just beyond ours": png(MAX_PIXELS // 1024 + 1, 1024),
    "BMP": patched("BMP", "<ii", (321, 123), (50_000, 50_000)),
    "GIF": patched("GIF", "<HH", (321, 123), (65_535, 65_535)),
    "JPEG": patched("JPEG", ">HH", (123, 321), (65_500, 65_500)),
    "PPM": patched("PPM", "11s", (b"321 123\n255",), (b"90000 90000",)),
    "WebP": patched("WEBP", "<I", (320 | 122 << 14,), (16_382 | 16_382 << 14,)),
}
REFUSED = {
    **BOMBS,
    "two in a GIF": encoded(IMAGE, "GIF", **TWO),
    "two in a TIFF": encoded(IMAGE, "TIFF", **TWO),
    "not finite": encoded(Image.fromarray(NOT_FINITE), "TIFF"),
    "no digit": encoded(np.full((50, 50), 255)),
}
UNKNOWN = {
    "EPS, whose decoder starts programs": encoded(IMAGE, "EPS"),
    "text": b"a digit",
    "empty": b"",
}


def check_refused(path):
    with pytest.raises(InputError) as caught:
        read_digit(path)
    assert shown(path) in str(caught.value) and "expected" in str(caught.value)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("name", [*REFUSED, *UNKNOWN])
def test_what_is_refused(name, tmp_path):
    path = tmp_path / "line\nfeed"
    path.write_bytes({**REFUSED, **UNKNOWN}[name])
    assert ("known kind" in check_refused(path)) == (name in UNKNOWN)  # before it is decoded


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").touch()
    os.truncate(tmp_path / "long", MAX_FILE_BYTES + 1)  # takes no room on the disk
    for name in ("missing", "", "pipe", "long", "a\0b"):
        check_refused(tmp_path / name)


def test_too_little_memory_is_not_the_pictures_fault(tmp_path, monkeypatch):
    def exhausted(content):
        raise MemoryError

    (tmp_path / "digit.png").write_bytes(encoded(IMAGE))
    monkeypatch.setattr(picture_files, "_decode", exhausted)
    with pytest.raises(MemoryError):
        read_grey(tmp_path / "digit.png")


LIMITED = """
import resource, sys
from pathlib import Path
from mlpcore import InputError
from mlpcore.data.digit import read_digit
with open("/proc/self/statm") as file:
    begun = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (begun + int(sys.argv[1]),) * 2)
for name in sys.argv[2:]:
    try:
        read_digit(Path(name))
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_memory_is_bounded(tmp_path):
    """1.5 GiB are enough for the largest picture, and a tenth of that for all that is refused."""
    largest = encoded(Image.new("RGBA", (8192, 8192)), compress_level=1)
    for mebibytes, contents in ((1536, [largest]), (150, BOMBS.values())):
        for number, content in enumerate(contents):
            (tmp_path / str(number)).write_bytes(content)
        names = map(str, range(len(contents)))
        command = [sys.executable, "-c", LIMITED, str(mebibytes * 2**20), *names]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("expected") == len(contents)


SMALL = Image.fromarray(pictures.as_bytes(pictures.written(pictures.enlarged(DIGITS[5], 40))))
ORIGINALS = [
    *(encoded(SMALL, kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM")),
    encoded(SMALL.convert("RGBA"), "PNG"),
    encoded(SMALL, "TIFF", compression="tiff_lzw"),
    encoded(SMALL.convert("RGB"), "WEBP"),
]


near_start = st.integers(0, 63) | st.integers(0, 10**6)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "picture"


@given(
    st.sampled_from(ORIGINALS),
    st.lists(st.tuples(near_start, st.integers(1, 255)), max_size=4),
    st.tuples(near_start, st.binary(max_size=8)),
    st.none() | st.integers(1, 4000),
)
@settings(max_examples=400)
def test_damaged_files_are_digits_or_one_line(path, original, flips, inserted, length):
    content = bytearray(original)
    for place, bits in flips:
        content[place % len(content)] ^= bits
    content[inserted[0] : inserted[0]] = inserted[1]
    path.write_bytes(content[:length])
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            pixels = read_digit(path).pixels
            assert (pixels.shape, pixels.dtype) == ((28, 28), np.uint8)
        except InputError as error:
            assert str(error).isprintable() and str(path) in str(error)
    assert errors.getvalue() == ""


def test_libtiff_does_not_write_to_the_terminal(capfd):
    """Not even of a directory whose entries, one after another, are of no known type."""
    content = encoded(GREY, "TIFF", compression="tiff_adobe_deflate")
    begin = struct.unpack("<I", content[4:8])[0]
    (n_entries,) = struct.unpack("<H", content[begin : begin + 2])
    for place in range(begin + 2, begin + 2 + 12 * n_entries, 12):
        for kind in (b"\0\0", b"\xff\xff"):
            with contextlib.suppress(InputError):
                damaged = content[: place + 2] + kind + content[place + 4 :]
                picture_files.decode_grey(damaged, "picture")
            with contextlib.suppress(InputError):
                damaged = content[:place] + kind + content[place + 2 :]
                picture_files.decode_grey(damaged, "picture")
    os.write(2, b"still there\n")
    assert capfd.readouterr().err == "still there\n"
