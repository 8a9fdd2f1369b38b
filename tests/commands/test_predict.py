"""`mlpcore predict`: pictures recognised, what it prints and writes, bad pictures, networks."""

import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mlpcore
import pictures
from mlpcore.__main__ import main
from mlpcore.commands.predict import GREY_LEVELS
from mlpcore.data.digit import find_digit
from mlpcore.data.image_files import read_picture
from mlpcore.network import Network
from pictures import DIGITS
from small_runs import write_weights


def write_picture(name, digit=0):
    image = pictures.written(pictures.enlarged(DIGITS[digit]))
    Path(name).write_bytes(pictures.encoded(image))
    return name


@pytest.fixture
def run(isolated):
    """The name of a network that guesses what it likes."""
    write_weights("net.safetensors", Network((841, 9, 10), 5), (29, 29), (28, 28))
    return "net.safetensors"


@pytest.mark.parametrize("copies", [None, 4])
def test_answers_are_those_of_the_networks_together(run, capsys, copies):
    """Networks and pictures are told apart wherever they stand."""
    networks = [run, "n.safetensors"]
    write_weights(networks[1], Network((841, 9, 10), 1), (29, 29), (28, 28), input_range="unit")
    scans = [write_picture(f"{number}.png", number) for number in range(3)]
    options = ["--copies", "4", "--strength", "0.2", "--seed", "1"] if copies else []
    assert main(["predict", run, *scans, networks[1], "--json", *options]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    if copies:
        assert re.fullmatch(r"note: copies: 4 of [^\n]*; 8 passes [^\n]*prediction\n", err)
        assert document["copies"] == {"n": 4, "strength": 0.2, "seed": 1, "passes": 8}
    assert [each["file"] for each in document["networks"]] == networks
    net = mlpcore.load(networks, copies=copies, strength=0.2, seed=1)
    for scan, found in zip(scans, document["pictures"], strict=True):
        outputs = net.outputs_of_digits(net.to_images(scan))[0]
        assert np.abs(found["outputs"] - outputs).max() <= 1e-4  # four digits
        best = [(int(k), found["outputs"][k]) for k in np.argsort(-outputs)[:2]]
        assert [(each["class"], each["output"]) for each in found["guesses"]] == best


def test_a_line_for_each_picture(run, call):
    """In the order in which they are named; in a folder in that of the names."""
    names = [write_picture(f"{number}.png", number) for number in (2, 0, 1)]
    lines = call("predict", run, *names).splitlines()
    for line, name in zip(lines, names, strict=True):
        pattern = r": \d \(-?\d\.\d\d\), then \d \(-?\d\.\d\d\)"
        assert re.fullmatch(re.escape(name) + pattern, line)
    Path(".hidden.png").write_bytes(Path("0.png").read_bytes())
    Path("notes.txt").touch()
    assert call("predict", run, ".").splitlines() == sorted(lines)
    odd = write_picture(os.fsdecode(b"caf\xe9\n.png"))
    assert call("predict", run, odd, "--save-normalised", "seen").count("\n") == 1
    assert len(os.listdir("seen")) == 1
    assert json.loads(call("predict", run, odd, "--json"))["pictures"][0]["file"] == odd


def test_bad_pictures_leave_the_others(run, capsys):
    good = [write_picture("first.png"), write_picture("last.png", 1)]
    Path("text.png").write_text("7")
    pair = np.hstack([pictures.enlarged(DIGITS[0]), pictures.enlarged(DIGITS[1])])
    Path("pair.png").write_bytes(pictures.encoded(pictures.written(pair)))
    bad = ["text.png", "pair.png", "missing.png"]
    names = [good[0], *bad, good[1]]
    assert main(["predict", run, *names]) == 2
    out, err = capsys.readouterr()
    assert [line.split(":")[0] for line in out.splitlines()] == [good[0], "pair.png", good[1]]
    for line, name in zip(err.splitlines(), bad, strict=True):
        assert line.startswith(("error: ", "warning: ")) and name in line and "expected" in line
    assert main(["predict", run, *names, "--json"]) == 2
    answers = json.loads(capsys.readouterr().out)["pictures"]
    assert [answer["file"] for answer in answers] == names
    kinds = "error", "warning"
    said = [f"{kind}: {each[kind]}" for each in answers for kind in kinds if kind in each]
    assert said == err.splitlines()
    assert [len(answer.get("guesses", ())) for answer in answers] == [2, 0, 2, 0, 2]
    Path("empty").mkdir()
    assert main(["predict", run, "empty", good[0]]) == 2
    out, err = capsys.readouterr()
    assert out.startswith(good[0]) and err.startswith("error: the folder empty holds no pictures")


def test_a_picture_on_standard_input(run, call, monkeypatch):
    expected = call("predict", run, write_picture("a.png", 3))
    given = io.TextIOWrapper(io.BytesIO(Path("a.png").read_bytes()))
    monkeypatch.setattr("sys.stdin", given)
    assert call("predict", run, "-") == expected.replace("a.png", "-")


def test_what_the_network_was_given(run, capsys):
    Path("other").mkdir()
    for digit, name in ((3, "a.png"), (4, "other/a.png")):
        write_picture(name, digit)
    names = ["a.png", "missing.png", "other/a.png"]
    argv = ["predict", run, *names, "--save-normalised", "seen", "--show"]
    assert main(argv) == 2
    assert sorted(os.listdir("seen")) == ["0001-a.png", "0003-a.png"]
    first = find_digit(read_picture("a.png").grey).pixels
    with Image.open("seen/0001-a.png") as image:
        assert np.array_equal(np.asarray(image), first)
    for line, row in zip(capsys.readouterr().out.splitlines()[1:], first):
        levels = [GREY_LEVELS.index(character) for character in line.ljust(56)[::2]]
        assert levels == (row.astype(int) * 10 // 256).tolist()
