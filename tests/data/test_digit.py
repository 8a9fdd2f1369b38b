"""Pictures of digits in MNIST's format: boxed, centred, without paper, shadows and dirt."""

import os
from itertools import product

import numpy as np
import pytest
from scipy import ndimage

import mlpcore
import pictures
from mlpcore import InputError, dataset
from mlpcore.data import idx
from mlpcore.data.digit import find_digit
from mlpcore.data.idx import FILES
from pictures import DIGITS, difference, difference_nearby

#: Ink that uneven light and JPEG may add to a digit or take from it. The embedded digits have
#: wide grey edges, which the edge of a shadow cuts by up to 0.23.
LEFT_OVER = 0.25


def pixels_of(grey):
    return find_digit(grey).pixels


def box(pixels, threshold=90):
    """First row, last row, first column and last column of what is brighter."""
    rows, columns = np.nonzero(pixels > threshold)
    return rows.min(), rows.max(), columns.min(), columns.max()


def off_centre(pixels):
    """Distance of the centre of mass from pixel (14, 14) in rows and in columns."""
    places = np.mgrid[:28, :28].reshape(2, -1)
    return np.average(places, axis=1, weights=pixels.ravel()) - 14


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
        top, bottom, left, right = box(pixels, 25)
        longer = max(bottom - top, right - left) + 1
        assert 17 <= longer <= 20, name  # an edge of noise or of a blur may be fainter
        # To the nearest pixel; rounding to bytes moves it by less than a hundredth.
        assert np.abs(off_centre(pixels)).max() <= 0.51, name
        if name in ("inverted", "gradient", "shadow", "off-centre", "jpeg"):
            assert difference_nearby(pixels, expected) < LEFT_OVER, name
    faint = pictures.written(pictures.enlarged(DIGITS[0]), 210, 160)  # a slope up to the border
    assert difference_nearby(pixels_of(pictures.lit(faint, 0.6)), pixels_of(faint)) < LEFT_OVER


def test_the_aspect_ratio_is_kept_and_edges_are_grey():
    frame = np.zeros((200, 200))
    frame[20:180, 60:140] = 255  # 160 high, 80 wide
    frame[40:160, 80:120] = 0
    top, bottom, left, right = box(pixels_of(frame))
    assert (bottom - top + 1, right - left + 1) == (20, 10)
    assert len(np.unique(pixels_of(ring(90, 12, 300)))) > 20


@pytest.mark.parametrize("side, rows, centred", [(14, (7, 26), True), (34, (8, 27), False)])
def test_a_centre_of_mass_off_the_middle_of_the_box(side, rows, centred):
    """A pole with a flag at its top moves down, but not out of the image."""
    image = np.zeros((100, 100))
    image[10:90, 20:26] = 255
    image[10 : 10 + side, 26 : 26 + side] = 255
    pixels = pixels_of(image)
    assert box(pixels)[:2] == rows
    assert (np.abs(off_centre(pixels)).max() <= 0.51) == centred


@pytest.mark.parametrize("slant", [0, 0.3])
def test_digits_side_by_side_are_counted(slant):
    """Pieces of one digit, one above the other, and dirt beside it, are not."""
    for first, second in zip(DIGITS[:4], DIGITS[4:8]):
        both = np.hstack([pictures.enlarged(first), pictures.enlarged(second)])
        slanting = ndimage.affine_transform(both, [[1, 0], [slant, 1]], [0, -slant * 56], order=1)
        assert find_digit(pictures.written(slanting)).n_seen == 2
        for digit in first, second:
            assert find_digit(pictures.written(pictures.enlarged(digit))).n_seen == 1
    three = find_digit(np.hstack([ring(60, 10)] * 3), "a")
    assert three.warning == "a seems to show 3 digits side by side: expected one"
    assert find_digit(np.vstack([ring(60, 10)] * 2)).n_seen == 1
    dirty = ring(60, 10)
    dirty[90:110, 180:195] = 255
    assert find_digit(dirty).n_seen == 1


def test_dirt_is_left_out():
    clean = pictures.written(pictures.enlarged(DIGITS[3]))
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
    with pytest.raises(InputError):
        pixels_of(BLANK[name])


@pytest.mark.skipif(not os.environ.get("MLPCORE_DATA"), reason="MLPCORE_DATA is not set")
def test_mnists_own_digits_stay_what_they_are(tmp_path):
    """Judged by pixels, and by the network in the package."""
    data = dataset.load(os.environ["MLPCORE_DATA"], name="mnist")
    (file,) = (name for name in os.listdir(data.source) if name.startswith(FILES[2]))
    digits = idx.read_idx(os.path.join(data.source, file))[:1000]
    found = np.array([pixels_of(digit) for digit in digits])
    # A digit moves by a pixel where its centre is about half way between two pixels, because its
    # faint edges are cut off. Otherwise it stays where it is.
    assert np.mean([difference_nearby(a, b) > 0.1 for a, b in zip(found, digits)]) < 0.02
    assert np.mean([difference(a, b) > 0.1 for a, b in zip(found, digits)]) < 0.08
    # Few guesses change, in both directions. One in a hundred is beyond chance.
    net = mlpcore.load("pretrained")
    wrong = [np.sum(net.predict(each) != data.test_labels[:1000]) for each in (digits, found)]
    assert abs(wrong[1] - wrong[0]) <= 10 and wrong[1] < 30
