"""Pictures of digits in MNIST's format: boxed, centred, without paper, shadows, lines and dirt.

Every kind of file is read; everything else is refused on one line in little memory.
"""

import contextlib
import io
import os
import struct
from itertools import product

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import mlpcore
import pictures
from mlpcore import InputError, dataset
from mlpcore.data.digit import find_digit
from mlpcore.data.image_files import MAX_FILE_BYTES, MAX_PIXELS, REDUCED_SIDE, read_picture
from mlpcore.errors import shown
from pictures import DIGITS, difference, difference_nearby, encoded, framed
from small_runs import refusal

#: Ink that uneven light and JPEG may add to a digit or take from it. The embedded digits have
#: wide grey edges, which the edge of a shadow cuts by up to 0.23. Strokes along a line are thinner
#: or thicker. A line that remains costs 0.3.
LEFT_OVER, REMAINING = 0.25, 0.15


def pixels_of(grey):
    return find_digit(grey).pixels


def written(k):
    return pictures.as_bytes(pictures.written(pictures.enlarged(DIGITS[k])))


def assert_same_digit(picture, k, most=REMAINING):
    """Dark ink on light ground, or light on dark."""
    expected = pixels_of(written(k))
    for grey in picture, 255 - picture:
        assert difference_nearby(pixels_of(grey), expected) < most


def ring(radius, width, side=200):
    y, x = np.mgrid[:side, :side] - side / 2
    return 255.0 * (np.abs(np.hypot(y, x) - radius) < width)


@pytest.mark.parametrize("k", range(6))
def test_every_picture_is_in_the_box_and_centred(k):
    """And what is no ink leaves no trace."""
    found = pictures.photographs(DIGITS[k], np.random.default_rng(k))
    expected = pixels_of(found["enlarged"])
    for name, grey in found.items():
        pixels = pixels_of(grey)
        assert (pixels.shape, pixels.dtype, pixels.max()) == ((28, 28), np.uint8, 255)
        longer = max(map(np.ptp, np.nonzero(pixels > 25))) + 1
        assert 17 <= longer <= 20, name  # an edge of noise or of a blur may be fainter
        # To the nearest pixel; rounding to bytes moves it by less than a hundredth.
        assert np.abs(np.subtract(ndimage.center_of_mass(pixels), 14)).max() <= 0.51, name
        if name in ("inverted", "gradient", "shadow", "off-centre", "jpeg"):
            assert difference_nearby(pixels, expected) < LEFT_OVER, name
    faint = pictures.written(pictures.enlarged(DIGITS[0]), 210, 160)  # a slope up to the border
    assert difference_nearby(pixels_of(pictures.lit(faint, 0.6)), pixels_of(faint)) < LEFT_OVER


@pytest.mark.parametrize("slant", [0, 0.3])
def test_digits_side_by_side_are_counted(slant):
    """Pieces of one digit, one above the other, and dirt beside it, are not."""
    assert {find_digit(written(k)).n_seen for k in range(8)} == {1}
    for first, second in zip(DIGITS[:4], DIGITS[4:8]):
        both = np.hstack([pictures.enlarged(first), pictures.enlarged(second)])
        slanting = ndimage.affine_transform(both, [[1, 0], [slant, 1]], [0, -slant * 56], order=1)
        assert find_digit(pictures.written(slanting)).n_seen == 2
    three = find_digit(np.hstack([ring(60, 10)] * 3), "a")
    assert three.warning == "a seems to show 3 digits: expected one, or mlpcore read"
    assert find_digit(np.vstack([ring(60, 10)] * 2)).n_seen == 1
    dirty = ring(60, 10)
    dirty[90:110, 180:195] = 255
    assert find_digit(dirty).n_seen == 1


def test_dirt_is_left_out():
    clean = written(3)
    dirty = clean.copy()
    dirty[2:5, 2:5] = dirty[-4:-2, 5:9] = pictures.INK
    assert difference(pixels_of(dirty), pixels_of(clean)) < 0.01
    speck = ring(70, 10)  # and inside a digit
    speck[97:104, 97:104] = 255
    assert np.array_equal(pixels_of(speck), pixels_of(ring(70, 10)))


def test_a_crop_of_two_values_along_the_ink():
    """Dark or light, it is what it is with a margin; one in a hundred has more ink at its border
    than ground, and is taken for its inverse."""
    same = []
    for digit, side in product(DIGITS[:20], (16, 40)):
        crop = pictures.tight(digit, side)
        expected = pixels_of(np.pad(crop, 8, constant_values=pictures.PAPER))
        same += [np.array_equal(pixels_of(grey), expected) for grey in (crop, 255 - crop)]
    assert np.mean(same) > 0.95


@pytest.mark.parametrize("sides", ["tblr", "t", "b", "lr", "tl", "blr"])
@pytest.mark.parametrize("thick", [1, 4, 12])
def test_a_frame_leaves_no_trace(sides, thick):
    for k in range(4):
        assert_same_digit(framed(written(k), thick, sides), k)


@pytest.mark.parametrize("pale", [50, 110, 150])
def test_the_rest_of_a_line_that_was_cut_along_leaves_no_trace(pale):
    """At the border, as dark as the line or paler, beside whole lines or alone."""
    for k, whole in enumerate(["", "t", "lr", "tbl"] * 2):
        cell = framed(written(k), 3, whole)[5:-5, 5:-5]
        for side, view in zip("tblr", (cell, cell[::-1], cell.T, cell.T[::-1])):
            if side not in whole:
                view[:2] = pale
        assert_same_digit(cell, k)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("step", [14, 25, 40])
def test_the_lines_of_paper_leave_the_strokes_that_cross_them(step, squared):
    for k in range(6):
        paper = np.pad(written(k), 12, mode="edge")
        paper[step // 2 :: step] = pictures.INK
        if squared:
            paper[:, step // 2 :: step] = pictures.INK
        assert_same_digit(paper, k, LEFT_OVER)


def test_a_bar_along_a_side_is_a_stroke():
    seven = np.zeros((60, 50), np.uint8)
    seven[:8] = seven[:, -8:] = 255
    five = np.zeros((60, 36), np.uint8)
    five[:10] = five[25:35] = five[50:] = five[:30, :6] = five[30:, -6:] = 255
    for digit in seven, five:
        expected = pixels_of(np.pad(digit, 20))
        for grey in np.pad(digit, 2), 255 - np.pad(digit, 2):
            assert difference_nearby(pixels_of(grey), expected) < 0.05


BLANK = {
    "empty cell": np.pad(np.full((88, 119), 210.0), ((2, 0), (0, 1)), constant_values=120),
    "white": np.full((40, 30), 255.0),
    "gradient": pictures.lit(np.full((80, 90), 200.0)),
    "vignette": pictures.vignetted(np.full((80, 90), 200.0)),
    "noise": pictures.noisy(np.full((80, 90), 200.0), np.random.default_rng(0)),
    "faint": pictures.written(pictures.enlarged(DIGITS[0]), 200, 185),
}


@pytest.mark.parametrize("name", list(BLANK))
def test_a_picture_without_a_digit(name):
    refusal(pixels_of, BLANK[name])


@pytest.mark.skipif(not os.environ.get("MLPCORE_DATA"), reason="MLPCORE_DATA is not set")
def test_mnists_own_digits_stay_what_they_are(tmp_path):
    """Judged by pixels, and by the network in the package."""
    data = dataset.load(os.environ["MLPCORE_DATA"], name="mnist")
    digits = data.test_pixels[:1000]
    found = np.array([pixels_of(digit) for digit in digits])
    # A digit moves by a pixel where its centre is about half way between two pixels, because its
    # faint edges are cut off. Otherwise it stays where it is.
    assert np.mean([difference_nearby(a, b) > 0.1 for a, b in zip(found, digits)]) < 0.02
    assert np.mean([difference(a, b) > 0.1 for a, b in zip(found, digits)]) < 0.08
    # Few guesses change, in both directions. One in a hundred is beyond chance.
    net = mlpcore.load("pretrained")
    wrong = [np.sum(net.predict(each) != data.test_labels[:1000]) for each in (digits, found)]
    assert abs(wrong[1] - wrong[0]) <= 10 and wrong[1] < 30


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
    assert difference_nearby(pixels_of(grey), pixels_of(GREY)) < 0.1


def test_a_camera_held_otherwise(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # shown after a quarter turn clockwise
    upright, path = GREY[:, :90], tmp_path / "photo.png"
    stored = Image.fromarray(np.ascontiguousarray(np.rot90(upright)))
    path.write_bytes(encoded(stored, exif=exif))
    assert np.array_equal(read_picture(path).grey, upright)


NOT_FINITE = np.where(GREY < 255, GREY.astype(np.float32), 0)
NOT_FINITE[3, 3] = np.nan
REFUSED = {
    "far beyond Pillow's limit": (b"P6 90000 90000 255\n" + bytes(10**5), "is too large"),
    "beyond Pillow's limit": (b"P5 10000 10000 255\n", "is too large"),
    "just beyond ours": (b"P5 %d 1024 255\n" % (MAX_PIXELS // 1024 + 1), "is too large"),
    "two in a GIF": (encoded(IMAGE, "GIF", **SECOND), "several pictures"),
    "not finite": (encoded(Image.fromarray(NOT_FINITE), "TIFF"), "not finite"),
    "EPS, whose decoder starts programs": (encoded(IMAGE, "EPS"), "known kind"),
    "text\n": (b"a digit", "known kind"),
}


def test_what_is_no_picture(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, (content, _) in {**REFUSED, "long": (b"", "")}.items():
        (tmp_path / name).write_bytes(content)
    os.truncate(tmp_path / "long", MAX_FILE_BYTES + 1)  # takes no room on the disk
    for path in (tmp_path / name for name in (*REFUSED, "missing", "", "pipe", "long", "a\0b")):
        message = refusal(lambda: find_digit(*read_picture(path)[:2]))  # noqa: B023
        assert shown(path) in message and "expected" in message and message.isprintable()
        assert REFUSED.get(path.name, ("", ""))[1] in message


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
