"""Lines and edges in a picture leave no trace, and strokes of digits stay."""

import numpy as np
import pytest

import pictures
from mlpcore.data.digit import find_digit
from pictures import DIGITS, difference_nearby, framed

#: A line that remains costs 0.3.
REMAINING = 0.15

#: Strokes along a line are thinner or thicker.
LEFT_OVER = 0.25


def written(k):
    return pictures.as_bytes(pictures.written(pictures.enlarged(DIGITS[k])))


def assert_same_digit(picture, k, most=REMAINING):
    """Dark ink on light ground, or light on dark."""
    expected = find_digit(written(k)).pixels
    for grey in picture, 255 - picture:
        assert difference_nearby(find_digit(grey).pixels, expected) < most


@pytest.mark.parametrize("sides", ["tblr", "t", "b", "lr", "tl", "blr"])
@pytest.mark.parametrize("thick", [1, 4])
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


def test_the_edge_of_a_table_is_cut_off():
    for band in 0, 90:
        picture = np.pad(written(3), 50, mode="edge")
        picture[:, :30] = picture[-20:] = band
        assert_same_digit(picture, 3)


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
        expected = find_digit(np.pad(digit, 20)).pixels
        for grey in np.pad(digit, 2), 255 - np.pad(digit, 2):
            assert difference_nearby(find_digit(grey).pixels, expected) < 0.05
