"""Boxed forms: every box is found in its place, and holds what was written into it."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from clear_digits import CLEAR
from mlpcore.data.ink import reduced
from mlpcore.errors import InputError
from mlpcore.reading.lattice import find_lattices
from pages import BROKEN, form, lit, noisy, number, on_paper, put, read, ruled, turned, written
from pictures import DIGITS, LABELS, as_bytes

#: How boxes lie on a page: columns, and the settings of `form`.
LAYOUTS = {
    "grid": (8, {}),
    "table": (6, {"box": (60, 44), "line": 3}),
    "gaps": (7, {"gap": (16, 24)}),
    "row": (24, {}),
    "a row of gaps": (24, {"gap": (9, 0), "box": (40, 52)}),
    "pairs": (2, {"gap": (0, 44), "box": (44, 56)}),
}


def page(layout="grid", n=24, empty=(), **changes):
    """The ink of a form, the middles of its boxes, and its columns."""
    columns, settings = LAYOUTS[layout]
    digits = [None if k in empty else DIGITS[k] for k in range(n)]
    return *form(digits, columns, np.random.default_rng(1), **settings | changes), columns


def scan(ink):
    return on_paper(ink, np.random.default_rng(2))


def check_places(found, centres, columns, within=5):
    """Each box in its place, in lines from left to right."""
    assert found.boxed
    assert [len(line) for line in found.lines] == [columns] * (len(centres) // columns)
    middles = np.array([each.corners.mean(axis=0) for each in found.digits])
    assert np.abs(middles - centres).max() < within
    for each, (x, y) in zip(found.digits, centres):
        left, top, right, bottom = each.box
        assert left < x < right and top < y < bottom


@pytest.mark.parametrize("angle", [-5, 3.3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes_of_all_kinds(layout, angle):
    ink, centres, columns = page(layout, 28 if layout == "gaps" else 24)
    ink, centres = turned(ink, centres, angle, 0)
    found = read(lit(scan(ink)))
    check_places(found, centres, columns)
    right = [each.answer for each in found.digits] == LABELS[: len(centres)]
    assert np.mean(right) > 0.8  # scikit-learn's digits have 8 x 8 pixels


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("layout", [{}, {"line": 1}, {"gap": (14, 20), "line": 3}])
def test_pages_as_they_come(kind, layout):
    ink, centres = form(CLEAR * 6, 10, np.random.default_rng(1), box=(80, 64), **layout)
    broken, note = BROKEN[kind]
    image, centres = broken(scan(ink), centres)
    found = read(image)
    check_places(found, centres, 10)
    right = [each.answer for each in found.digits] == list(range(10)) * 6
    assert np.mean(right) > 0.9
    assert (note in "".join(found.notes)) if note else not found.notes
    assert "not seen" not in found.warning


@pytest.mark.parametrize("width", [1, 3, 40])
@pytest.mark.parametrize("dark", [0, 45])
def test_a_dark_border(width, dark):
    ink, centres, columns = page()
    check_places(
        read(np.pad(lit(scan(ink)), width, constant_values=dark)), centres + width, columns
    )
    digits = number(CLEAR[:4], np.random.default_rng(0), angle=0)
    strip = np.tile(digits, 2)[len(digits) // 2 - 35 : len(digits) // 2 + 35]
    for ink, text in (digits, "0123"), (strip, "01230123"):
        bordered = np.pad(lit(scan(ink)), width, constant_values=dark)
        assert read(bordered).text.replace("?", "").replace(" ", "") == text


@pytest.mark.parametrize("shade", [100, 140, 180])
def test_a_sheet_darker_than_its_ground(shade):
    """In uneven light, turned; a panel beside other boxes is no sheet."""
    ink, centres, columns = page(n=48)
    sheet = on_paper(ink, np.random.default_rng(2), shade, 0.4 * shade)
    image, places = turned(np.pad(sheet, 90, constant_values=240), centres + 90, 3, 240)
    found = read(lit(image))
    check_places(found, places, columns)
    assert "ground" in found.notes[0]
    found = read(np.concatenate([np.pad(sheet, 60, constant_values=240), scan(np.pad(ink, 60))]))
    assert len(found.digits) == 96 and not found.notes


@pytest.mark.parametrize("scale", [0.6, 3.0])
def test_from_150_to_600_dpi(scale):
    """3.0 makes a page that is reduced before boxes are found, whose corners are those of all."""
    ink, centres, columns = page(n=48, box=(80, 60), line=3)
    image = scan(np.pad(ink, ((0, 800), (0, 900))))
    found = read(ndimage.zoom(image, scale, order=1))
    assert (found.scale > 1) == (scale > 1)
    check_places(found, scale * centres, columns, within=5 * scale)


@pytest.mark.parametrize("line, lost", [(1, 0.02), (2, 0.1)])
def test_noise_leaves_holes_in_lines(line, lost):
    ink, centres, columns = page(line=line)
    ink[np.random.default_rng(0).random(ink.shape) < lost] = 0
    check_places(read(scan(ink)), centres, columns)


def test_boxes_that_the_border_cuts():
    ink, centres, columns = page("table")
    check_places(read(scan(ink)[:, :-62]), centres, columns)
    ink = np.pad(ink, ((0, 0), (90, 0)))  # a box at the border, and noise
    ink[80:125, :54] = np.pad(np.zeros((39, 51)), ((3, 3), (0, 3)), constant_values=1)
    ink[:, -54:] = np.random.default_rng(0).random((len(ink), 54)) < 0.5
    check_places(read(scan(ink)), np.add(centres, (90, 0)), columns)
    ink, centres = form(CLEAR[3:5], 2, np.random.default_rng(1))
    check_places(read(scan(ink)[:, :-64]), centres, 2)


@pytest.mark.parametrize("kind", ["dotted", "rounded"])
@pytest.mark.parametrize("scale", [1, 2])
def test_boxes_without_straight_corners(kind, scale):
    """Lines of dots, and rounded boxes."""
    gap = {"dotted": 0, "rounded": 10}[kind]
    box, gaps = (50 * scale, 44 * scale), (gap * scale, 12 * scale)
    ink, centres = form([None] * 40, 10, np.random.default_rng(1), box, gaps, 2 * scale)
    y, x = np.indices(ink.shape)
    if kind == "dotted":
        ink *= (x + y) % (6 * scale) < 2 * scale
    else:
        ink[:] = 0
        for at in centres:
            over = np.abs(np.stack([x, y], axis=2) - at) - np.subtract(box, 20 * scale) / 2
            ink[np.abs(np.hypot(*over.clip(0).transpose(2, 0, 1)) - 10 * scale) < scale] = 1
    for digit, (x, y) in zip(CLEAR * 4, centres.astype(int)):
        strokes = written(digit, 26 * scale)
        put(ink, strokes, x - strokes.shape[1] // 2, y - strokes.shape[0] // 2)
    found = read(scan(ink))
    check_places(found, centres, 10, within=5 * scale)
    assert np.mean([each.answer for each in found.digits] == np.tile(range(10), 4)) > 0.9


def test_empty_boxes_and_text():
    ink, _, columns = page(empty=(0, 9, 23))
    found = read(scan(ink))
    assert [k for k, each in enumerate(found.digits) if each.answer is None] == [0, 9, 23]
    lines = found.text.replace("?", "").split("\n")
    assert [len(line) for line in lines] == [columns] * 3
    assert lines[0][0] == lines[1][1] == lines[2][7] == "_"
    assert found.text.count("?") == sum(each.in_doubt for each in found.digits)
    ink, *_ = page("a row of gaps", gap=(40, 0))  # each box is a number of its own
    assert read(scan(ink)).text.count(" ") == 23
    found = read(scan(page(empty=range(24))[0]))
    assert found.boxed and "24 boxes are empty: expected digits" in found.warning
    assert found.text == "\n".join(["_" * 8] * 3)


def test_letters_among_digits_are_in_doubt():
    """Print that the network reads as digits; it is sure of most."""
    letters = []
    for each in "GqZJBbgDQyej":
        image = Image.new("L", (80, 80))
        ImageDraw.Draw(image).text((40, 40), each, 255, ImageFont.load_default(44), "mm")
        letters.append(np.asarray(image))
    ink, centres = form([*letters, *CLEAR, *CLEAR[:2]], 6, np.random.default_rng(0), (70, 60))
    cells = in_cells(read(on_paper(ink, np.random.default_rng(0))), centres, (35, 30))
    doubts = [any(each.in_doubt for each in cell) for cell in cells]
    assert np.mean(doubts[:12]) > 0.9 and not any(doubts[12:])


def in_cells(found, centres, reach):
    """The answers at each middle of a box, so far to the sides."""
    middles = np.array([each.corners.mean(axis=0) for each in found.digits])
    near = [(np.abs(middles - centre) < reach).all(axis=1) for centre in centres]
    return [[found.digits[k] for k in np.flatnonzero(which)] for which in near]


def test_a_table_of_numbers_and_signs():
    """A column of digits, one of numbers with a sign, and a column of marks without digits."""
    rng = np.random.default_rng(3)
    digits = [DIGITS[k] if k % 3 == 0 and k != 6 else None for k in range(18)]
    ink, centres = form(digits, 3, rng, (120, 64))
    for k, (x, y) in enumerate(centres.astype(int)):
        if k % 3 == 1 or k == 6:  # also a number in the column of digits
            for digit, left in zip(DIGITS[k : k + 2], (x - 20, x + 18)):
                put(ink, written(digit, 36), left, y - 18)
            if k % 2:
                ink[y - 2 : y + 2, x - 46 : x - 28] = 1
        elif k < 12 and k % 3:
            ink[y - 2 : y + 2, x - 10 : x + 12] = 1
    found = in_cells(read(scan(ink)), centres, (58, 30))
    texts = ["".join(str(each.answer) for each in cell) for cell in found]
    numbers = ["-" * (k % 2) + "".join(map(str, LABELS[k : k + 2])) for k in range(18)]
    wanted = [(str(LABELS[k]), numbers[k], "-" * (k < 12))[k % 3] for k in range(18)]
    wanted[6] = numbers[6]
    texts = [text.replace("None", "") for text in texts]
    assert texts[2::3] == wanted[2::3] and texts[6] == wanted[6]
    assert all(cell[0].begins_number for cell in found[2::3])
    assert np.mean([a == b for a, b in zip(texts, wanted)]) > 0.8
    assert [text.startswith("-") for text in texts] == [text.startswith("-") for text in wanted]


@pytest.mark.parametrize(
    "mark, shown",
    [
        ([(28, 2, 2)], "."),
        ([(27, 4, 2), (30, 4, 2)], ","),  # small, but no point
        ([(26, 21, 4)], ","),
        ([(28, 1, 1)], ""),  # dust
        ([(10, 4, 4), (23, 4, 4)], "?"),
    ],
)
def test_marks_between_digits_in_boxes(mark, shown):
    """Each piece of a mark is so far below the top of digits, so high and so wide."""
    tall = [CLEAR[3]] * 15  # in most boxes
    ink, centres = form([None] * 12 + tall, 3, np.random.default_rng(1), (120, 70), height=0.8)
    for x, y in centres[:12].astype(int):
        for digit, left in ((0, x - 36), (7, x + 14)):
            put(ink, written(CLEAR[digit], 32), left, y - 20)
        for n, (down, height, width) in enumerate(mark):
            put(ink, np.ones((height, width)), x - 2 * n, y - 20 + down)
    for cell in in_cells(read(scan(ink)), centres[:12], (60, 30)):
        marks = "".join(str(each.answer) for each in cell if not len(each.probabilities))
        assert marks == shown or shown == "?"
        assert any(each.in_doubt for each in cell) == (shown == "?")


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_strip_of_digits_and_one_number_beside_a_table(quarters):
    """Two digits in each box of the table, or one."""
    rng = np.random.default_rng(3)
    strip, _ = form([CLEAR[k] for k in (7, 3, 5, 0)], 4, rng, box=(50, 40))
    for several in (True, False):
        table, centres = form([None] * 16, 4, rng, box=(100, 60))
        alone, middle = form([None], 1, rng, box=(160, 70))
        held = [(table, *place, several) for place in centres.astype(int)]
        for ink, x, y, both in [*held, (alone, *middle[0].astype(int), True)]:
            for digit, left in ((3, -34), (7, 10))[: 1 + both]:
                put(ink, written(CLEAR[digit], 36), x + left, y - 18)
        rows = [np.pad(each, ((0, 0), (0, 600 - each.shape[1]))) for each in (strip, table, alone)]
        page = np.rot90(scan(np.concatenate(rows)), quarters)
        lines = read(page).text.replace("?", "").split("\n")
        assert lines == ["7350", *["37 37 37 37" if several else "3333"] * 4, "37"]


@pytest.mark.parametrize("digits", [[None] * 24, [None, None, *CLEAR[:2]] * 8])
def test_a_table_or_a_column_of_printed_words_has_no_sure_digit(digits):
    ink, centres = form(digits, 4, np.random.default_rng(1), box=(70, 30))
    image = Image.fromarray(as_bytes(255 * ink))
    words = ["Rxkj", "wxm", "JkHjn", "Kq", "Wb", "MM", "Gx", "Hill", "Oslo", "Ggqs", "Xk", "Zwg"]
    for (x, y), word in zip(centres[[each is None for each in digits]], 2 * words):
        ImageDraw.Draw(image).text((x, y), word, 255, ImageFont.load_default(14), "mm")
    cells = in_cells(read(scan(np.asarray(image) / 255)), centres, (35, 15))
    doubts = [{each.in_doubt for each in cell} for cell in cells]
    assert doubts == [{each is None} for each in digits]


def test_words_and_dirt_in_boxes_are_unknown():
    ink, centres = form(DIGITS[:12], 6, np.random.default_rng(1), box=(150, 60))
    kinds = (9, 1, 1, 4, 2, 0), (20, 8, 3, 10, 10, 0), (0, 0, 0, 0, 22, 0)
    for (x, y), n, side, joined in zip(centres[:6].astype(int), *kinds):
        ink[y - 26 : y + 26, x - 72 : x + 72] = 0
        ink[y - side // 2 : y - side // 2 + 3, x - 12 : x - 12 + joined] = 1  # a low m
        for left in range(x - 6 * n, x + 6 * n, 12):
            ink[y - side // 2 : y + side // 2, left : left + min(side, 5)] = 1
    ink[y + np.arange(-72, 72) // 3 + [[0], [1], [2]], x + np.arange(-72, 72)] = 1  # a diagonal
    assert [each.text for each in read(scan(ink)).digits[:6]] == ["*?", "*?", "_", *["*?"] * 3]


@pytest.mark.parametrize("layout", ["grid", "table", "row", "gaps", "pairs"])
@pytest.mark.parametrize("thick", [3, 9, 14])
def test_a_stroke_from_side_to_side_parts_no_box(layout, thick):
    ink, centres, columns = page(layout, 28 if layout == "gaps" else 24)
    for x, y in centres[[3, 2 if layout == "pairs" else 12]].astype(int):
        ink[y + 6 : y + 6 + thick, x - 30 : x + 30] = 1
    for x, y in centres[[2, 9]].astype(int) * (layout == "gaps"):  # nor make lines between rows one
        ink[y + 18 : y + 48, [x - 24, x - 23, x + 22, x + 23]] = 1
    x, y = centres[6].astype(int) * (layout == "pairs")  # nor does a stain
    ink[y - 60 : y + 60, x : x + 14] = ink[y - 60 : y + 60, x : x + 14].clip(0.3)
    check_places(read(scan(ink)), centres, columns)


@pytest.mark.parametrize("height, up", [(105, 0), (100, 20)])
def test_digits_higher_than_their_boxes(height, up):
    ink, centres = form([None] * 60, 10, np.random.default_rng(1), (90, 100))
    wanted = [(k + 3 * (k // 10)) % 10 for k in range(60)]
    for digit, (x, y) in zip(wanted, centres.astype(int)):
        strokes = written(CLEAR[digit], height)
        put(ink, strokes, x - strokes.shape[1] // 2, y - strokes.shape[0] // 2 - up)
    ink, centres = turned(ink, centres, 0.4, 0)
    found = read(scan(ink))
    check_places(found, centres, 10, within=20)
    wrong = [each for each, digit in zip(found.digits, wanted) if each.answer != digit]
    assert (up or len(wrong) < 20) and sum(not each.in_doubt for each in wrong) < 3


@pytest.mark.parametrize("side", [30, 24])
def test_small_boxes_beside_larger_ones(side):
    """Boxes to tick, each alone, in lines with a strip of larger ones."""
    small, _ = form([None] * 24, 3, np.random.default_rng(0), (side, side), (70 - side, 60 - side))
    large, _ = form(CLEAR[:4] * 8, 4, np.random.default_rng(1), (44, 44), (0, 16))
    found = read(scan(np.concatenate([small, large[: len(small)]], axis=1)))
    assert found.text.replace("?", "") == "\n".join(["_ _ _ 0123"] * 8)


def test_letters_above_a_grid_are_no_boxes():
    ink, centres = form(CLEAR * 3, 10, np.random.default_rng(1), (44, 44))
    image = Image.fromarray(as_bytes(255 * np.pad(ink, ((200, 0), (0, 340)))))
    for text, y in ("good food, too; book of doors", 20), ("DOOR ROOM BOOK DAD QUO DODO", 105):
        ImageDraw.Draw(image).text((60, y), text, 255, ImageFont.load_default(50))
    check_places(read(scan(np.asarray(image) / 255)), np.add(centres, (0, 200)), 10)


@pytest.mark.parametrize("box, rows", [((40, 50), 4), ((28, 28), 4), ((40, 36), 1)])
def test_strip_of_small_boxes_above_larger_ones(box, rows):
    """Smaller ones are no combs, and digits twice as tall as most are in doubt."""
    strip, _ = form(CLEAR[:6], 6, np.random.default_rng(0), box)
    large, _ = form(CLEAR[:4] * rows, 4, np.random.default_rng(1), (104, 90))
    page = np.zeros((60 + len(strip) + len(large), max(strip.shape[1], large.shape[1])))
    put(page, strip, 0, 60)
    put(page, large, 0, 60 + len(strip))
    lines = ["012345"] * (box[0] > 28) + ["0123" if rows > 1 else "0?1?2?3?"] * rows
    assert read(scan(page)).text == "\n".join(lines)


@pytest.mark.parametrize("quarters", [0, 1, 2])
def test_dashes_do_not_turn_a_page(quarters):
    """Unused boxes hold dashes, three quarters of all, in boxes of three widths."""
    for width in (50, 70, 100):
        ink, centres = form(CLEAR * 2 + [None] * 60, 8, np.random.default_rng(1), (width, 50))
        for x, y in centres[20:].astype(int):
            ink[y - 2 : y + 2, x - 16 : x + 16] = 1
        found = read(np.rot90(scan(ink), quarters))
        assert len(found.notes) == (quarters > 0)
        answers = [str(each.answer) for each in found.digits]
        assert answers == [*"0123456789" * 2, *"-" * 60]


@pytest.mark.parametrize("options", [{}, {"columns": 8, "rows": 3}, {"columns": 8}, {"rows": 3}])
def test_a_known_grid_with_broken_lines(options):
    ink, centres, columns = page()
    for x, y in centres[[1, 4, 10, 22]]:  # lines between boxes
        ink[int(y) - 8 : int(y) + 8, int(x) + 20 : int(x) + 30] = 0
    check_places(read(scan(ink), **options), centres, columns)


def test_tables_without_outer_lines_and_lines_that_stick_out():
    ink, centres, columns = page()
    bottom, right = np.max(np.nonzero(ink), axis=1)
    is_open = np.pad(ink[62 : bottom - 1, 62 : right - 1], 62)
    ink[:, 40:60] = ink[:, [63]]
    for each in (ink, is_open):
        check_places(found := read(scan(each)), centres, columns)
        assert not found.warning


@pytest.mark.parametrize(
    "options, expected", [({"columns": 7}, "7 columns"), ({"rows": 9}, "9 rows")]
)
def test_a_grid_of_another_size_is_refused(options, expected):
    message = f"the picture shows a grid of 8 columns and 3 rows: expected {expected}"
    with pytest.raises(InputError, match=message):
        read(scan(page()[0]), **options)
    with pytest.raises(InputError, match="shows no lines: expected a grid of drawn boxes"):
        read(scan(np.zeros((300, 400))), **options)
    frame, _ = form([None], 1, np.random.default_rng(0), box=(80, 80))
    with pytest.raises(InputError, match="shows a grid of 1 columns and 1 rows"):
        read(scan(frame), columns=60, rows=1)
    assert len(read(scan(frame), columns=1).digits) == len(read(scan(frame), rows=1).digits) == 1


def test_a_lattice_without_the_boxes_of_a_column():
    """Those of the fourth are too low for their rows; its place is between the others'."""
    x, y = 100.0 * np.stack(np.meshgrid(range(7), range(3))).reshape(2, -1)
    low = np.tile([0, 0, 10, 13, 10, 0, 0], 3)
    ends = np.stack([x, y + low, x + 95, y + 95 - low], axis=1)
    first = find_lattices(ends[:, [[0, 1], [2, 1], [2, 3], [0, 3]]])[0]
    assert set(first.places[:, 1]) == {0, 1, 2, 4, 5, 6} and first.shape == (3, 7)
    assert first.medians(x[first.members], 1) == pytest.approx(range(0, 700, 100))


def test_boxes_that_lost_the_line_between_them_shift_no_others():
    """Two pairs side by side, and two boxes between rows, without a place in these."""
    ends = [(x, y, x + 95, y + 65) for x in range(0, 700, 100) for y in range(0, 525, 105)]
    ends = [each for each in ends if each[0] not in (300, 400) or each[1] not in (210, 315)]
    pairs = [(x, 210, x + 95, 380) for x in (300, 400)]
    ends = np.array([*ends, *pairs, (0, 68, 95, 102), (100, 68, 195, 102)], float)
    first, *others = find_lattices(ends[:, [[0, 1], [2, 1], [2, 3], [0, 3]]])
    assert ([105, 100] * first.places == ends[first.members][:, [1, 0]]).all()
    assert sum(len(each.members) for each in (first, *others)) == len(ends)


@pytest.mark.parametrize("margin, strength", [(0, 0.4), (300, 0.12)])
def test_squared_paper_has_no_boxes(margin, strength):
    """Digits are written across its lines, which may be as pale as noise."""
    ink = number(DIGITS[:4], np.random.default_rng(0), gap=(0.3, 0.5), angle=0)
    image = ruled(225.0 - 170 * np.pad(ink, margin), 24, True, strength)
    found = read(noisy(image, np.random.default_rng(0), 2))
    assert not found.boxed and len(found.digits) == 4


def test_pale_print_in_empty_boxes_is_in_doubt():
    """Such as the D of a day; read as a 0."""
    rng = np.random.default_rng(1)
    ink, print_, lines = (form(each, 10, rng)[0] for each in (CLEAR * 3, CLEAR * 6, [None] * 60))
    print_ -= lines
    print_[: len(ink) - 60] = 0
    sheet = np.maximum(np.pad(ink, ((0, len(lines) - len(ink)), (0, 0))), lines)
    found = read(scan(np.maximum(sheet, 0.13 * print_))).digits
    assert [each.in_doubt for each in found] == [each.box[3] > len(ink) - 50 for each in found]
    assert len(found) >= 60


@pytest.mark.parametrize("depth", [12, 30])
@pytest.mark.parametrize("layout", [{}, {"line": 1}, {"gap": (14, 20)}])
def test_lines_paler_than_ink(depth, layout):
    """As printed forms have them, of 225 grey values with a noise of 3."""
    (ink, centres), (lines, _) = (
        form(digits, 10, np.random.default_rng(1), box=(80, 64), **layout)
        for digits in (CLEAR * 6, [None] * 60)
    )
    image, centres = turned(225 - np.where(lines > 0, depth, 175 * ink), centres, 0.7)
    found = read(noisy(image, np.random.default_rng(2), 3))
    check_places(found, centres, 10)
    assert [each.answer for each in found.digits] == list(range(10)) * 6


@pytest.mark.parametrize("pen", [120, 190])
def test_a_broad_pen_paler_than_lines(pen):
    """Its strokes are no shaded ground."""
    ink, lines = (
        form(digits, 10, np.random.default_rng(1), box=(124, 140), line=4, height=0.45)[0]
        for digits in (CLEAR * 4, [None] * 40)
    )
    image = np.minimum(245 - (245 - pen) * ink, 245 - 225 * lines)
    found = read(noisy(image, np.random.default_rng(2), 3))
    assert [each.answer for each in found.digits] == list(range(10)) * 4


@pytest.mark.parametrize("shade", [150, 205, 225])
@pytest.mark.parametrize("is_paper, scale, angle", [(False, 1, 0), (True, 1, 0), (True, 2, -3)])
def test_shaded_rows_and_white_boxes_on_tinted_paper(shade, is_paper, scale, angle):
    """The boxes of every other row are darker than paper, or all lighter and without lines."""
    box, gap = np.array([(60, 50), (20, 16) if is_paper else (0, 0)]) * scale
    layout = {"box": tuple(box), "gap": tuple(gap)}
    ink, centres = form(CLEAR * 4, 10, np.random.default_rng(1), **layout)
    image = np.full(ink.shape, shade if is_paper else 245.0)
    for k, (x, y) in enumerate(np.rint(centres - box / 2).astype(int)):
        image[y : y + box[1], x : x + box[0]] = 245 if is_paper or k // 10 % 2 else shade
    if is_paper:
        ink -= form([None] * 40, 10, np.random.default_rng(1), **layout)[0]
    image, centres = turned(image + (40 - image) * ink, centres, angle, shade)
    found = read(noisy(image, np.random.default_rng(2), 3))
    check_places(found, centres, 10)
    assert [each.answer for each in found.digits] == list(range(10)) * 4


@pytest.mark.parametrize(
    "line, height, longest, lean",
    [(2, 60, 10, 0), (4, 70, 10, 0), (10, 70, 10, 0), (2, 90, 7, 0.12)],
)
def test_groups_of_boxes_have_no_boxes_between_them(line, height, longest, lean):
    """Rows of groups of unlike lengths, half a box apart, and rows that end before others."""
    groups = [(2, 2, 4), (4, 4, 2), (longest,), (3, 3), (6,), (longest,)]
    sheet, rng = np.zeros((7 * height + 120, 820)), np.random.default_rng(1)
    for row, lengths in enumerate(groups):
        left = 0
        for n in lengths:
            boxes, _ = form(CLEAR[:n], n, rng, box=(50, 44), line=line)
            put(sheet, boxes, left, row * height)
            left += 50 * n + 27
    sheet = ndimage.affine_transform(sheet, [[1, 0], [-lean, 1]], order=1)
    found = read(scan(sheet)).text.replace("?", "")
    words = [" ".join("0123456789"[:n] for n in lengths) for lengths in groups]
    assert found == "\n".join(words)


def test_frames_around_small_and_large_boxes():
    """Cards, each with a row of small boxes of thin lines and one of large boxes of thick ones."""
    page, rng = np.zeros((900, 1300)), np.random.default_rng(0)
    rows = (0, 1, (580, 210), 3), (25, 6, (37, 37), 2), (115, 3, (68, 68), 4)
    for top, left in np.ndindex(3, 2):
        for down, n, box, line in rows:
            ink, _ = form([None] * n, n, rng, box, line=line)
            put(page, ink[40:-40, 40:-40], 20 + 620 * left + min(down, 30), 20 + 250 * top + down)
    assert len(read(250 - 230 * page).digits) == 6 * 9


@pytest.mark.parametrize("n, box", [(6, (72, 44)), (4, (60, 60)), (3, (40, 56))])
def test_a_strip_of_boxes_in_a_frame(n, box):
    """Neither a comb nor one large box."""
    rng = np.random.default_rng(0)
    frame, _ = form([None], 1, rng, (500, 160))
    strip, _ = form(CLEAR[:n], n, rng, box)
    put(frame, strip[40:-40, 40:-40], 80, 100)
    assert len(read(scan(frame)).digits) == n


def test_a_turned_strip_of_boxes_that_strokes_part():
    ink, centres = form([None] * 5, 5, np.random.default_rng(1), (50, 66))
    k = np.arange(-24, 25)[:, None]
    for x, y in centres[[0, 2, 3]].astype(int):
        ink[y - 20 + k // 3 + range(4), x + k] = 1
    ink, centres = turned(ink, centres, 12, 0)
    check_places(read(scan(ink)), centres, 5)


def test_a_dark_head_around_a_box_is_no_writing_across_a_form():
    ink, centres, columns = page(empty=range(6, 24))
    ink[5:45, 10:-10] = 1
    ink[10:40, 30:70] = 0
    found = read(scan(ink))
    assert [len(line) for line in found.lines] == [1, *[columns] * (len(centres) // columns)]


def comb(sheet, digits, left, base, tick, ends):
    """Digits on a line with ticks of a height between them, and of another one at its ends."""
    right = left + 64 * len(digits)
    for k, digit in enumerate(digits):
        ink = written(digit, 46)
        put(sheet, ink, left + 20 + 64 * k, base - 2 - ink.shape[0])
    sheet[base : base + 3, left : right + 4] = 1
    for x in range(left, right + 1, 64):
        height = round(64 * (ends if x in (left, right) else tick))
        sheet[base - height : base, x : x + 3] = 1


@pytest.mark.parametrize("scale, quarters", [(0.6, 0), (1.0, 1), (1.0, 2)])
def test_combs_in_frames(scale, quarters):
    """Two on lines, and strips with ticks below, and above and below, in a frame with a title."""
    image = Image.new("L", (900, 640))
    ImageDraw.Draw(image).text((60, 50), "SENDER", 255, ImageFont.load_default(30))
    sheet = np.array(image) / 255
    sheet[[40, 41, 42, 600, 601, 602], 40:860] = sheet[40:600, [40, 41, 42, 857, 858, 859]] = 1
    for k, n in enumerate((10, 6, 10, 10)):
        base = 200 + 120 * k
        comb(sheet, CLEAR[:n], 100, base, 0.3, 0.3 if k < 2 else 1.2)
        sheet[base - 77 : base - 74, 100 : 744 * (k > 1)] = 1
        for x in range(100, 741 * (k > 2), 64):
            sheet[base - 77 : base - 57, x : x + 3] = 1
    sheet = np.rot90(sheet, quarters)
    found = read(np.asarray(reduced(as_bytes(scan(sheet)), round(900 * scale))))
    assert found.text.replace("?", "").split() == ["0123456789"[:n] for n in (10, 6, 10, 10)]


def test_ticks_that_cross_their_line_part_no_digits():
    """As the lines of an open table do."""
    sheet = np.zeros((300, 800))
    comb(sheet, CLEAR, 60, 152, 0.5, 0.5)
    for x in range(60, 701, 64):
        sheet[152:184, x : x + 3] = 1
    assert not read(scan(sheet)).boxed


@pytest.mark.parametrize("tick, ends", [(0.15, 0), (0.3, 0.3), (0.5, 1.1), (1.0, 1.0)])
@pytest.mark.parametrize("boxes", [0, 6])
def test_short_combs_alone_and_beside_boxes(tick, ends, boxes):
    """Fields of two to four places on a page that is ten times as wide as the second."""
    sheet = np.zeros((900, 1920))
    put(sheet, form(CLEAR[4 : 4 + boxes], 6, np.random.default_rng(1), (80, 64))[0], 200, 600)
    comb(sheet, CLEAR[:3], 300, 300, tick, ends)
    comb(sheet, CLEAR[3:7], 700, 301, tick, ends)
    comb(sheet, CLEAR[7:9], 1200, 300, 0.3, 0.3)
    sheet[298:310, 498:522] = 1  # a printed point
    sheet[500:503, 300:900] = 1  # an underlined word
    sheet[440:500, [*range(320, 325), *range(347, 352), *range(440, 445), *range(530, 535)]] = 1
    sheet[800:803, 400:600] = sheet[800:820, 700:900] = 1  # a line and a bar, with noise on them
    sheet[780:800, [450, 451, 500, 501, 550, 551, 750, 751, 800, 801, 850, 851]] = 1
    sheet[790:800, [420, 421, 435, 436, 465, 466, 480, 481, 520, 521]] = 1
    found = read(scan(sheet))
    lines = [[each.answer for each in line] for line in found.lines]
    assert lines == [list(range(9)), list(range(4, 4 + boxes))][: 1 + (boxes > 0)]
