"""`mlpcore read`: what it prints and writes of pages, and bad pages."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import mlpcore
from mlpcore.__main__ import main
from pages import form, on_paper
from pictures import DIGITS
from small_runs import refusal


def write(name, n=12, digits=DIGITS, **settings):
    ink, centres = form(digits[:n], 6, np.random.default_rng(1), **settings)
    image = Image.fromarray(np.rint(on_paper(ink, np.random.default_rng(2))).astype(np.uint8))
    image.save(name)
    return centres


def test_text_and_json_and_the_drawn_page(call):
    centres = write("form.png")
    text = call("read", "pretrained", "form.png", "--show", "found.png")
    document = json.loads(call("read", "pretrained", "form.png", "--json"))
    (page,) = document["pages"]
    assert page["file"] == "form.png" and page["text"] + "\n" == text
    assert [len(line) for line in page["lines"]] == [6, 6]
    for each, (x, y) in zip([each for line in page["lines"] for each in line], centres):
        left, top, right, bottom = each["box"]
        assert left < x < right and top < y < bottom
        assert each["answer"] == np.argmax(each["probabilities"])
        assert abs(sum(each["probabilities"]) - 1) < 0.01
        assert each["in_doubt"] == (each["doubt"] > 0.1) and 0 <= each["doubt"] <= 1
    with Image.open("found.png") as drawn, Image.open("form.png") as plain:
        assert drawn.mode == "RGB" and drawn.size == plain.size
        coloured = np.ptp(np.asarray(drawn), axis=2) > 50
    left, top, right, bottom = page["lines"][0][1]["box"]  # the first one shows its number
    assert coloured[top : bottom + 1, left].mean() > 0.9
    assert coloured[:top, left:right].any()  # the answer, which leaves the ink free
    assert not coloured[top + 5 : bottom - 4, left + 5 : right - 4].any()


def test_several_pages(call, capsys):
    for name in ("b.png", "a.png"):
        write(name, 6 if name == "a.png" else 12)
    lines = call("read", "pretrained", "b.png", ".").splitlines()
    assert [line for line in lines if line.endswith(":")] == ["b.png:", "a.png:", "b.png:"]
    assert len(lines) == 3 + 2 + 1 + 2
    Image.new("L", (400, 300), 230).save("blank.png")
    assert main(["read", "pretrained", "missing.png", "blank.png", "a.png"]) == 2
    out, err = capsys.readouterr()
    missing, blank = err.splitlines()
    assert missing.startswith("error: cannot read missing.png: No such file")
    assert blank.startswith("warning: blank.png: nothing found, expected digits")
    assert out.splitlines()[:2] == ["blank.png:", "a.png:"]


def test_the_pages_of_a_tiff_file(call, capsys, monkeypatch):
    for name, n in ("a.png", 6), ("b.png", 12):
        write(name, n)
    with Image.open("a.png") as first, Image.open("b.png") as second:
        first.save("scan.tif", save_all=True, append_images=[second])
    out = call("read", "pretrained", "scan.tif", "--csv", "out.csv", "--show", "shown")
    singly = call("read", "a.png", "b.png").replace("a.png", "scan.tif:1")
    assert out == singly.replace("b.png", "scan.tif:2")
    assert sorted(os.listdir("shown")) == ["0001-scan.png", "0002-scan.png"]
    rows = csv.DictReader(Path("out.csv").read_text().splitlines())
    assert [row["file"] for row in rows] == ["scan.tif:1", "scan.tif:2", "scan.tif:2"]
    with Image.open("scan.tif") as image:
        texts = [mlpcore.read(each, page=2).text for each in ("scan.tif", image)]
        assert texts == [mlpcore.read("b.png").text] * 2 and image.tell() == 0
    for options, words in (({}, "several pictures"), ({"page": 3}, "holds fewer than 3 pages")):
        assert words in refusal(mlpcore.read, "scan.tif", **options)
    assert main(["read", "scan.tif", "--new-fields", "form.json"]) == 2
    assert "expected one file of a picture" in capsys.readouterr().err
    monkeypatch.setattr("mlpcore.data.image_files.MAX_PAGES", 1)
    assert main(["read", "a.png", "scan.tif"]) == 2
    message = "error: scan.tif holds more than 1 pages: expected fewer\n"
    assert capsys.readouterr() == ("", message)


def test_a_table_of_a_folder(call, capsys):
    """By fields a row a page, also of one that cannot be read; without fields a row a line."""
    os.makedirs("scans/old")
    write("scans/a.png")
    write("form.png", digits=[None] * 12)  # no warning that the sample is empty
    call("read", "pretrained", "form.png", "--new-fields", "form.json")
    fields = json.loads(Path("form.json").read_text())
    assert fields["sample"] == "form.png" and list(fields["fields"]) == ["field 1", "field 2"]
    Path("scans/b.png").write_bytes(b"no picture")
    options = ["scans", "--csv", "out.csv", "--fields", "form.json", "--show", "shown"]
    assert main(["read", "pretrained", *options]) == 2
    assert capsys.readouterr().out.startswith(f"{os.path.join('scans', 'a.png')}:\nfield 1: ")
    rows = [*csv.DictReader(Path("out.csv").read_text().splitlines())]
    assert [row["file"] for row in rows] == ["scans/a.png", "scans/b.png"]
    assert [len(row["field 2"]) for row in rows] == [6, 0]
    assert rows[1]["in doubt"] == "field 1; field 2"
    assert os.listdir("shown") == ["0001-a.png"]
    assert main(["read", "pretrained", *options[:3]]) == 2
    assert capsys.readouterr().err.startswith("note: scans: not read: old\nerror: ")
    rows = [*csv.DictReader(Path("out.csv").read_text().splitlines())]
    assert [row["line"] for row in rows] == ["1", "2", ""] and len(rows[0]) == 3 + 6


def test_a_bar_of_pages_on_a_terminal(monkeypatch):
    for name in ("a.png", "b.png"):
        write(name, 6)
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["read", "pretrained", "."]) == 0
    assert "2/2" in terminal.getvalue()
