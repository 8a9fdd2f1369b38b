"""Lines at the sides of a picture are cut off, and strokes of digits are not."""

import numpy as np
import pytest

import pictures
from mlpcore.data.digit import find_digit
from mlpcore.data.frame import without_frame
from pictures import DIGITS, difference_nearby, framed

#: A line that remains costs 0.3.
REMAINING = 0.15

#: A row of three in fourteen is put between others, which thins and thickens strokes along it.
LEFT_OVER = 0.25


def written(k):
    return pictures.as_bytes(pictures.written(pictures.enlarged(DIGITS[k])))


@pytest.mark.parametrize("sides", ["tblr", "t", "b", "lr", "tl", "blr"])
@pytest.mark.parametrize("thick", [1, 4])
def test_a_frame_leaves_no_trace(sides, thick):
    """Dark ink on light ground, or light on dark."""
    for k in range(4):
        expected = find_digit(written(k)).pixels
        cell = framed(written(k), thick, sides)
        for grey in cell, 255 - cell:
            assert difference_nearby(find_digit(grey).pixels, expected) < REMAINING
    assert without_frame(cell).shape != cell.shape


@pytest.mark.parametrize("pale", [50, 110, 150])
def test_the_rest_of_a_line_that_was_cut_along_leaves_no_trace(pale):
    """At the border, as dark as the line or paler, beside whole lines or alone."""
    for k, whole in enumerate(["", "t", "lr", "tbl"] * 2):
        cell = framed(written(k), 3, whole)[5:-5, 5:-5]
        for side, view in zip("tblr", (cell, cell[::-1], cell.T, cell.T[::-1])):
            if side not in whole:
                view[:2] = pale
        for grey in cell, 255 - cell:
            expected = find_digit(written(k)).pixels
            assert difference_nearby(find_digit(grey).pixels, expected) < REMAINING


@pytest.mark.parametrize("step", [14, 25, 40])
def test_the_lines_of_ruled_paper_leave_the_strokes_that_cross_them(step):
    for k in range(6):
        paper = np.pad(written(k), 12, mode="edge")
        paper[step // 2 :: step] = pictures.INK
        for grey in paper, 255 - paper:
            found = find_digit(grey).pixels
            assert difference_nearby(found, find_digit(written(k)).pixels) < LEFT_OVER


def test_a_form_of_several_cells_stays_whole():
    page = np.vstack([np.hstack([framed(written(k + n)) for n in range(3)]) for k in range(3)])
    assert without_frame(page).shape == page.shape


@pytest.mark.parametrize("k", range(8))
def test_pictures_without_a_frame_stay_whole(k):
    """Also where a bar of the digit runs along a side."""
    found = pictures.photographs(DIGITS[k], np.random.default_rng(k))
    del found["squared paper"]
    bar = np.zeros((60, 50), np.uint8)
    bar[:8] = bar[:, -8:] = 255  # a 7
    five = np.zeros((60, 36), np.uint8)
    five[:10] = five[25:35] = five[50:] = five[:30, :6] = five[30:, -6:] = 255
    tight = [pictures.tight(DIGITS[k], side) for side in (16, 40, 90)]
    for grey in (*found.values(), *tight, bar, np.pad(five, 2)):
        for each in grey, 255 - grey:
            each = pictures.as_bytes(each)
            assert np.array_equal(without_frame(each), each)
