"""Numbers without boxes: their digits are found, parted, put in order, and read."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from clear_digits import CLEAR
from mlpcore.data.ink import page_ink, without_lines
from mlpcore.errors import InputError
from mlpcore.reading import answers
from mlpcore.reading.numbers import number_fields
from pages import noisy, number, on_cheque, on_paper, photographed, put, read, rotated, written


def test_numbers_in_any_light_on_any_paper():
    """Of 15, as many as MNIST's own digits allow; tools/reading.py measures those."""
    rng = np.random.default_rng(5)
    whole, right = 0, []
    for _ in range(15):
        chosen = rng.integers(0, 10, rng.integers(2, 9)).tolist()
        ink = number([CLEAR[k] for k in chosen], rng, int(rng.integers(30, 90)), slant=0.15)
        found = [each.answer for each in read(photographed(ink, rng)).digits]
        same = len(found) == len(chosen)
        whole += same
        right += [same and found[k] == digit for k, digit in enumerate(chosen)]
    assert whole >= 13 and np.mean(right) > 0.8


def test_digits_that_touch_are_cut():
    """Most pairs: 87 of all 100."""
    right = 0
    for pair in [(k, (k + step) % 10) for k in range(10) for step in (3, 7)]:
        left, other = (written(CLEAR[k], 80) for k in pair)
        for overlap in range(40):
            sheet = np.zeros((200, 300))
            put(sheet, left, 60, 60)
            put(sheet, other, 60 + left.shape[1] - overlap, 60)
            if ndimage.label(sheet > 0.4)[1] == 1:
                break
        found = read(on_paper(sheet, np.random.default_rng(0))).digits
        if [each.answer for each in found] == list(pair):
            first, second = (each.box for each in found)
            right += abs(first[0] - 60) < 10 and abs(first[2] - second[0]) < max(overlap, 10)
    assert right >= 15


def test_amounts_on_cheques():
    """Strips of paper, hardly higher than their digits, with a pattern and a line below."""
    rng, right = np.random.default_rng(1), 0
    for _ in range(10):
        chosen = [7, *rng.integers(0, 10, 3).tolist()]  # whose stem ends on the line
        ink = number([CLEAR[k] for k in chosen], rng, 40, (0.1, 0.3), slant=0.1, angle=1)
        right += [each.answer for each in read(on_cheque(ink, rng)).digits] == chosen
    assert right >= 9


@pytest.mark.parametrize("angle", [-4, 0, 4])
@pytest.mark.parametrize("inverted", [False, True])
def test_lines_and_numbers_in_order(angle, inverted):
    sheet = np.zeros((420, 800))
    for row, line in enumerate((("1905", "36"), ("27", "618"), ("4", "784"))):
        for column, digits in enumerate(line):
            left = 60 + 430 * column
            for each in digits:
                ink = written(CLEAR[int(each)], 60)
                put(sheet, ink, left, 60 + 110 * row)
                left += ink.shape[1] + 14
    image = on_paper(rotated(sheet, angle), np.random.default_rng(0))
    found = read(255 - image if inverted else image)
    assert found.text.replace("?", "") == "1905 36\n27 618\n4 784" and not found.boxed


#: Marks: how far right of a digit, how far down from its top, width, height, and free space.
MARKS = {".": (4, 57, 3, 3, 16), ",": (6, 50, 6, 22, 16), "-": (4, 30, 30, 5, 38)}


@pytest.mark.parametrize("text", ["12.50", "0,75", "-37", "1.234.-", "-0.5", "1234"])
def test_signs_points_and_commas(text):
    sheet, left = np.zeros((200, 600)), 60
    for each in text:
        if each in MARKS:
            right, down, width, height, free = MARKS[each]
            put(sheet, np.ones((height, width)), left + right - 10, 60 + down)
            left += free
        else:
            ink = written(CLEAR[int(each)], 60)
            put(sheet, ink, left, 60)
            left += ink.shape[1] + 10
    found = read(on_paper(sheet, np.random.default_rng(0)))
    assert found.text.replace("?", "") == text
    assert not any(each.in_doubt for each in found.digits if each.answer in MARKS)


@pytest.mark.parametrize("left, top, side", [(125, 65, 14), (40, 112, 8)])
def test_unknown_ink_puts_its_neighbour_in_doubt(left, top, side):
    """So does a point before the first digit, which may be the rest of a frame."""
    sheet = np.zeros((200, 400))
    for k in (0, 1):
        put(sheet, written(CLEAR[k], 60), 60 + 100 * k, 60)
    sure = read(on_paper(sheet, np.random.default_rng(0))).digits
    put(sheet, np.ones((side, side)), left, top)
    found = read(on_paper(sheet, np.random.default_rng(0))).digits
    assert [each.answer for each in found] == [0, 1]
    assert sum(each.in_doubt for each in sure) < sum(each.in_doubt for each in found)


@pytest.mark.parametrize("which, part", [(0, np.s_[-35:]), (4, np.s_[-35:]), (8, np.s_[:30])])
def test_half_a_digit_is_in_doubt(which, part):
    sheet = np.zeros((120, 120))
    put(sheet, written(CLEAR[which], 60)[part], 35, 30)
    [found] = read(on_paper(sheet, np.random.default_rng(0))).digits
    assert found.in_doubt


def test_print_is_in_doubt():
    image = Image.new("L", (900, 260), 245)
    text = "Sum Tax\nNet Sold\nBill Paid\nSize Oil"
    font = ImageFont.load_default(40)
    ImageDraw.Draw(image).multiline_text((40, 40), text, 20, font)
    found = read(np.asarray(image, float))
    assert len(found.digits) > 20 and all(each.in_doubt for each in found.digits)


def test_what_shows_no_digits(monkeypatch):
    rng = np.random.default_rng(0)
    for _ in range(3):  # whose specks look like points
        assert "expected" in read(noisy(np.full((300, 400), 200.0), rng)).warning
    for deviation in (2, 3):  # less light than white is left
        paper = np.floor(noisy(np.full((580, 830), 252.0), rng, deviation))
        assert "nothing found" in read(paper).warning
    empty = read(np.full((9, 900), 255))
    assert "nothing found" in empty.warning and empty.lines == []
    whole = np.full((9, 9), 255, np.uint8)
    assert not without_lines(whole, whole).any()  # whose pixels are not near to any ground
    scribble = 200.0 - 150 * np.kron(rng.random((40, 60)) < 0.3, np.ones((6, 6)))
    page = read(scribble)
    assert not page.digits or "in doubt, expected a page of digits" in page.warning
    with pytest.raises(InputError, match="4 x 50 pixels, expected a page of at least 8 x 8"):
        read(np.zeros((50, 4)))
    monkeypatch.setattr(answers, "MAX_GLYPHS", 1)
    with pytest.raises(InputError, match=r"the picture shows \d+ digits: expected at most 1"):
        read(on_paper(number([CLEAR[1], CLEAR[2]], rng), rng))


def test_pieces_that_broke_off_and_low_digits_are_no_marks():
    """The foot of a 2 was a point, and a low 0 a minus sign, and neither was in doubt."""
    sheet = np.zeros((200, 400))
    for k, digit in enumerate((1, 2, 4)):
        put(sheet, written(CLEAR[digit], 60), 60 + 80 * k, 60)
    end = 140 + written(CLEAR[2], 60).shape[1] - 10
    sheet[95:, end - 3 : end] = 0
    put(sheet, np.ones((8, 8)), 236, 128)  # below the 4
    put(sheet, written(CLEAR[0], 60)[::3], 300, 80)
    assert read(on_paper(sheet, np.random.default_rng(0))).text == "12?.?4?"


def test_ways_to_part_a_number_are_no_more_digits():
    """Eight digits show which way is up, not eight ways to part three; some cut much ink."""
    sheet = np.pad(np.ones((200, 3)), ((0, 0), (20, 377)))  # the side of a box, which is no 1
    for k, digit in enumerate((0, 2, 4)):
        put(sheet, written(CLEAR[digit], 90), 60 + 85 * k, 60)
    [[field]] = number_fields(page_ink(on_paper(sheet, np.random.default_rng(0)).astype(np.uint8)))
    assert len(field.likely) == 3 < sum(each.unsure for each in field.segments)


def test_digits_on_a_ruled_line_are_no_comb():
    """Beside a hole and the pale rest of a margin, which are no digits, unlike a thin 1."""
    sheet = np.zeros((160, 600))
    sheet[np.hypot(*(np.indices(sheet.shape) - [[[80]], [[30]]])) < 22] = 1
    sheet[40:80, 90] = 0.6
    for k, digit in enumerate((0, 9, 8, 4)):
        put(sheet, written(CLEAR[digit], 60), 120 + 70 * k, 50)
    sheet[104:106] = sheet[50:104, 420:422] = 1
    found = read(on_paper(sheet, np.random.default_rng(0)))
    assert not found.boxed and found.text.replace("?", "") == "09841"


def test_a_pen_paler_than_printed_lines():
    ink, lines = np.zeros((420, 700)), np.zeros((420, 700))
    for k, digit in enumerate(CLEAR[:9]):
        put(ink, written(digit, 45), 120 + k % 3 * 150, 50 + k // 3 * 120)
        lines[110 + k // 3 * 120 :][:4] = 1
    image = np.minimum(245 - 65 * ink, 245 - 225 * lines)
    found = read(noisy(image, np.random.default_rng(0), 3))
    assert found.text.replace("?", "").replace(" ", "") == "012\n345\n678"


def test_a_blurred_ring_is_no_shaded_ground():
    ring = np.abs(np.hypot(*(np.indices((700, 700)) - 350)) - 9) < 5
    image = 245 - 110 * ndimage.gaussian_filter(ring.astype(float), 3)
    image[100:104] = 20
    assert page_ink(image.astype(np.uint8)).values[350, 359] > 90


@pytest.mark.parametrize("begin, share", [(0, 1.0), (0, 0.6), (30, 1.0)])
def test_a_frame_around_a_number_is_no_ink(begin, share):
    """Open at the left, with lines of which a copy left pieces, or whole; digits stand on it."""
    rng, sheet, left = np.random.default_rng(0), np.zeros((160, 700)), 60
    for digit in (7, 1, 4, 0, 7, 4, 1):
        ink = written(CLEAR[digit], 60)
        put(sheet, ink, left, 50)
        left += ink.shape[1] + 22
    left -= 12
    level = np.repeat(rng.random(70) < share, 10)[: left + 3 - begin]
    for line in (sheet[38:41], sheet[109:112]):
        line[:, begin : left + 3] = np.maximum(line[:, begin : left + 3], level)
    upright = np.repeat(rng.random(8) < share, 9)[:, None]
    for side in (left, begin) if begin else (left,):
        sheet[38:110, side : side + 3] = np.maximum(sheet[38:110, side : side + 3], upright)
    found = read(on_paper(sheet, rng))
    assert found.text.replace("?", "") == "7140741"
