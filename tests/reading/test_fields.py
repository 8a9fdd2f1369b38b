"""Fields by name: found on each page by its boxes or by its print, read, and put into a row."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from clear_digits import NETWORK
from mlpcore.errors import InputError
from mlpcore.reading import Form
from mlpcore.reading.fields import line_rows
from pages import form, on_paper, put, read, rotated, written
from pictures import DIGITS, LABELS, as_bytes


def sheet(boxed, digits=(None,) * 8, amount=()):
    """The ink of a page: print, rows of eight boxes if it has some, and a line with an amount."""
    image = Image.new("L", (620, 520))
    for k, text in enumerate(["CLAIM 12 B", "Amount in figures", "Please write clearly"]):
        place = (40 + 30 * k, 20 + 170 * k + 90 * (k == 1))
        ImageDraw.Draw(image).text(place, text, 255, ImageFont.load_default(34))
    ink = np.asarray(image) / 255.0
    if boxed:
        boxes, _ = form(digits, 8, np.random.default_rng(0), box=(34, 36), gap=(16, 4))
        put(ink, boxes, 40, 80)
    for k, digit in enumerate(amount):
        put(ink, written(digit, 44), 360 + 46 * k, 270)
    ink[326:328, 340:600] = 1
    return ink


#: Left, top, right and bottom on the sample.
FIELDS = {
    True: {
        "date": [95, 135, 305, 185],
        "number": [298, 135, 505, 185],
        "amount": [340, 260, 600, 332],
    },
    False: {"amount": [340, 260, 600, 332]},
}


def scan(ink):
    return Image.fromarray(as_bytes(on_paper(ink, np.random.default_rng(1))))


def write_form(boxed, fields=None):
    scan(sheet(boxed)).save("sample.png")
    content = {"sample": "sample.png", "fields": fields or FIELDS[boxed]}
    Path("form.json").write_text(json.dumps(content), "utf-8-sig")  # as Windows writes it
    return Form("form.json", NETWORK)


pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.mark.parametrize(
    "boxed, angle, scale", [(True, 3, 1.2), (True, -2, 1.0), (False, 0, 1.0), (False, 3, 1.2)]
)
def test_a_record_of_each_page(boxed, angle, scale):
    ink = sheet(boxed, [None, *DIGITS[:7]], DIGITS[4:8])
    ink = np.pad(ndimage.zoom(rotated(ink, angle), scale, order=1), ((50, 20), (30, 70)))
    found = write_form(boxed).record(read(on_paper(ink, np.random.default_rng(1))))
    doubtful = found.pop("in doubt").split("; ")
    wanted = {"date": ["_", *LABELS[:3]], "number": LABELS[3:7], "amount": LABELS[4:8]}
    assert list(found) == list(FIELDS[boxed])
    texts = {name: "".join(map(str, wanted[name])) for name in found}
    wrong = [name for name in found if found[name] != texts[name]]
    assert set(wrong) <= set(doubtful) and len(wrong) <= 1
    assert {len(text) for text in found.values()} == {4}


def test_what_is_missing_is_in_doubt():
    form = write_form(True, {"none": [10, 400, 300, 440]} | FIELDS[True])
    page = read(scan(sheet(True)))
    records = [form.record(page)]
    page.lines[0].append(page.lines[0][-1]._replace(cell=np.ones((4, 2))))  # a box too many
    ink = sheet(True, DIGITS[3:11], DIGITS[6:10])
    ink[130:190, 350:407] = 0  # boxes go with the nearest ones of the sample
    records += form.record(page), form.record(scan(ink)), form.missing
    assert [each["date"] for each in records] == ["", "", "".join(map(str, LABELS[3:7])), ""]
    doubts = "none; amount", "none; number; amount", "none; number", "none; date; number; amount"
    assert [each["in doubt"] for each in records] == [*doubts]
    page.lines[0][8:] = (each._replace(cell=each.cell + 9) for each in page.lines[0][:8])
    for other in (scan(np.zeros((300, 400))), scan(sheet(True, [None] * 24)), page):
        with pytest.raises(InputError, match="does not show the form of"):
            form.record(other)
    pages = [scan(sheet(False, amount=DIGITS[3:7])[:, :width]) for width in (620, 560)]
    assert [write_form(False).record(each)["in doubt"] for each in pages] == ["", "amount"]


def test_rows_of_a_page_without_fields():
    ink, _ = form([None, *DIGITS[:11]], 6, np.random.default_rng(1))
    page = read(on_paper(ink, np.random.default_rng(2)))
    page.lines[0].pop(3)  # boxes that were not found
    word = page.lines[1].pop(0)._replace(doubt=1.0)
    rows = line_rows(page)
    assert [(row["line"], row["in doubt"]) for row in rows] == [("1", "4"), ("2", "1")]
    lengths = [[len(row[str(k)]) for k in range(1, 7)] for row in rows]
    assert lengths == [[0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 1]]
    page.lines.append([word] * 30)  # in one box
    assert not page.warning


@pytest.mark.parametrize(
    "sample, fields, message",
    [
        ("sample", '{"a": [9e5, 9e5, 1e9, 1e9]}', "field 'a' is .*: expected left, top"),
        ("sample", '{"in doubt": [5, 5, 99, 99]}', "field 'in doubt': expected another name"),
        ("none", '{"a": [1, 1, 5, 9]}', "cannot read none.png"),
        ("sample", '{"a": [1, 1, 5]}', "form.json is damaged"),
        ("sample", "{}", "form.json is damaged"),
        ("sample", '{"a": [1, 1, 50, 90], "a": [9, 9, 90, 90]}', "name 'a' occurs 2 times"),
    ],
)
def test_files_that_are_refused(sample, fields, message):
    scan(np.zeros((300, 400))).save("sample.png")
    Path("form.json").write_text(f'{{"sample": "{sample}.png", "fields": {fields}}}')
    with pytest.raises(InputError, match=message):
        Form("form.json", NETWORK)
