"""`mlpcore draw`: which network, and where the page is."""

import os
import shutil
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mlpcore.__main__ import main
from mlpcore.commands import draw
from mlpcore.store.run_folder import BEST, CONFIG

DIGITS = "--dataset", "digits", "--arch", "8", "--epochs"


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The pages that were opened."""
    files = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(
        webbrowser, "open", lambda url: files.append(Path(unquote(urlparse(url).path)))
    )
    return files


def test_a_named_network_opens_a_page(call, opened):
    assert call("draw", "pretrained").endswith(f"{opened[0]}\n")
    assert b'"net1: 841-1000-500-10"' in opened[0].read_bytes()


def test_without_any_run_a_small_network_is_trained_first(call, opened, monkeypatch):
    monkeypatch.setattr(draw, "FIRST", draw.FIRST | {"epochs": 1})
    first, again = call("draw"), call("draw")
    assert first.startswith("note: there is no run in runs/. First a small network is trained")
    assert first.endswith(f"{opened[0]}\n")
    assert again.startswith("note: runs/400-200-")
    assert opened[0].read_bytes() == opened[1].read_bytes()
    assert b"many more of other origin" in opened[0].read_bytes()
    monkeypatch.setattr(draw.train, "start", lambda options, console: 130)
    shutil.rmtree("runs")
    assert (main(["draw"]), len(opened)) == (130, 2)  # a training that is stopped opens nothing


def test_without_a_network_the_newest_run(call, opened):
    """That has not ended says so; a committee is one, a folder of runs is none."""
    call("train", *DIGITS, "2", "--out", "r")
    for age, name in enumerate(("b", "c", "a")):
        shutil.copytree("r", f"runs/{name}")
        os.utime(Path("runs", name, BEST), (age, age))
    config = Path("runs", "a", CONFIG)
    config.write_text(config.read_text().replace('"sigma": 6.0', '"sigma": 5.5'))
    assert "runs/a, the newest run\n" in call("draw")
    content = opened[0].read_bytes()
    assert b'"a: 841-8-10"' in content and b'"wrong": {"images"' in content
    assert b'"deformation": {"sigma": 5.5, "alpha": 36.0,' in content
    config.write_text(config.read_text().replace('"epochs": 2', '"epochs": 9'))
    said = call("draw")
    assert said.startswith("note: runs/a, the newest run, after 2 of 9 epochs; to go on: ")
    assert "train --resume runs/a\n" in said
    call("committee", "--members", "2", *DIGITS, "1", "--out", "runs/both")
    Path("runs/d/one").mkdir(parents=True)
    Path("runs/d/one", BEST).touch()
    assert call("draw").startswith("note: runs/both, the newest run\n")
    assert b"A committee of 2 networks" in opened[2].read_bytes()
