"""`mlpcore draw`: which network, and where the page is."""

import os
import shutil
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mlpcore.__main__ import main
from mlpcore.commands import draw
from mlpcore.data.dataset import EMBEDDED
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import BEST, CONFIG
from mlpcore.store.weights import write_network
from oracle import random_network


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The pages that were opened."""
    files = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(
        webbrowser, "open", lambda url: files.append(Path(unquote(urlparse(url).path)))
    )
    return files


@pytest.mark.parametrize("network", ["net.safetensors", "pretrained"])
def test_draw_opens_a_page(call, opened, network):
    network_input = NetworkInput(EMBEDDED, (29, 29), (8, 8)).to_metadata()
    write_network("net.safetensors", random_network((841, 12, 10), 1), network_input)
    assert call("draw", network).endswith(f"{opened[0]}\n")
    name = "net1: 841-1000-500-10" if network == "pretrained" else "net: 841-12-10"
    assert f'"{name}"'.encode() in opened[0].read_bytes()


def test_without_any_run_a_small_network_is_trained_first(call, opened, monkeypatch):
    monkeypatch.setattr(draw, "FIRST", draw.FIRST | {"epochs": 1})
    first, again = call("draw"), call("draw")
    assert first.startswith("note: there is no run in runs/. First a small network is trained")
    assert first.endswith(f"{opened[0]}\n")
    assert again.startswith("note: runs/400-200-")
    assert opened[0].read_bytes() == opened[1].read_bytes()
    assert b"many more of other origin" in opened[0].read_bytes()


def test_a_first_training_that_is_stopped_opens_nothing(opened, monkeypatch):
    monkeypatch.setattr(draw.train, "start", lambda options, console: 130)
    assert main(["draw"]) == 130
    assert not opened


def test_without_a_network_the_newest_run(call, opened):
    """That has not ended says so."""
    call("train", "--dataset", "digits", "--arch", "8", "--epochs", "2", "--out", "r")
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


def test_a_committee_may_be_the_newest(call, opened):
    """A folder of runs is none."""
    options = "--dataset", "digits", "--arch", "8", "--epochs", "1"
    call("committee", "--members", "2", *options, "--out", "runs/c")
    for path in "runs/alone", "runs/d/one":
        Path(path).mkdir(parents=True)
        Path(path, BEST).touch()
    os.utime(Path("runs", "alone", BEST), (0, 0))
    assert call("draw").startswith("note: runs/c, the newest run\n")
    assert b"A committee of 2 networks" in opened[0].read_bytes()
