"""`mlpcore draw` and `mlpcore export --html`: which network, where to, refusals."""

import os
import shlex
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from mlpcore import Network
from mlpcore.commands import draw, main
from mlpcore.data.dataset import EMBEDDED
from mlpcore.store.committee import DOCUMENT
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import BEST, CONFIG
from mlpcore.store.weights import read_network, write_network
from mlpcore.web import page
from oracle import random_network
from small_runs import same_weights


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The pages that were opened."""
    files = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(
        webbrowser, "open", lambda url: files.append(Path(unquote(urlparse(url).path)))
    )
    return files


def write(path, sizes=(841, 12, 10), seed=1):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    network_input = NetworkInput(EMBEDDED, (29, 29), (8, 8))
    write_network(path, random_network(sizes, seed), network_input.to_metadata())
    return path


def test_draw_opens_a_page(call, opened):
    write("net.safetensors")
    assert call("draw", "net.safetensors").endswith(f"{opened[0]}\n")
    assert b'"net: 841-12-10"' in opened[0].read_bytes()


def test_without_any_run_a_small_network_is_trained_first(call, opened, monkeypatch):
    monkeypatch.setattr(draw, "FIRST", draw.FIRST | {"epochs": 1})
    first, again = call("draw"), call("draw")
    assert first.startswith("note: there is no run in runs/. First a small network is trained")
    assert first.endswith(f"{opened[0]}\n")
    assert again.startswith("note: runs/400-200-")
    assert opened[0].read_bytes() == opened[1].read_bytes()
    assert b"841-400-200-10" in opened[0].read_bytes()
    assert b"many more of other origin" in opened[0].read_bytes()


def test_a_run_that_has_not_ended_is_taken_and_says_so(call, opened):
    call("train", "--dataset", "digits", "--arch", "8", "--epochs", "2", "--out", "runs/a")
    assert call("draw").startswith("note: runs/a, the newest run\n")
    config = Path("runs", "a", CONFIG)
    config.write_text(config.read_text().replace('"epochs": 2', '"epochs": 9'))
    said = call("draw")
    assert said.startswith("note: runs/a, the newest run, after 2 of 9 epochs; to go on: ")
    assert "train --resume runs/a\n" in said


def test_a_first_training_that_is_stopped_opens_nothing(opened, monkeypatch):
    monkeypatch.setattr(draw.train, "start", lambda options, console: 130)
    assert main(["draw"]) == 130
    assert not opened


def test_the_network_of_the_package_has_a_name(call, opened):
    call("draw", "pretrained")
    assert b'"net1: 841-1000-500-10"' in opened[0].read_bytes()


def test_without_a_network_the_newest_run(call, opened, digits_run):
    Path("runs").mkdir()
    for age, name in enumerate(("b", "c", "a")):
        Path("runs", name).mkdir()
        for file in digits_run.iterdir():
            Path("runs", name, file.name).write_bytes(file.read_bytes())
        os.utime(Path("runs", name, BEST), (age, age))
    config = Path("runs", "a", CONFIG)
    config.write_text(config.read_text().replace('"sigma": 6.0', '"sigma": 5.5'))
    assert "runs/a, the newest run" in call("draw")
    assert b'"a: 841-80-10"' in opened[0].read_bytes()
    assert b'"deformation": {"sigma": 5.5, "alpha": 36.0,' in opened[0].read_bytes()
    assert b'"wrong": {"images"' in opened[0].read_bytes()  # of the data of the run


def test_the_newest_may_be_a_committee():
    """A folder of runs is none."""
    for age, path in enumerate(("runs/c/width-10", "runs/alone", "runs/c/width-20", "runs/d/one")):
        Path(path).mkdir(parents=True)
        Path(path, BEST).touch()
        os.utime(Path(path, BEST), (age, age))
    Path("runs", "c", DOCUMENT).touch()
    assert draw.newest_run() == [Path("runs", "c")]


def test_a_committee_is_the_newest(call, opened):
    options = "--dataset", "digits", "--arch", "8", "--epochs", "1"
    call("committee", "--widths", "original,20", *options, "--out", "runs/c")
    assert call("draw").startswith("note: runs/c, the newest run\n")
    assert b"A committee of 2 networks" in opened[0].read_bytes()


def test_a_committee_in_one_page(call):
    networks = [write(f"{seed}.safetensors", seed=seed) for seed in range(3)]
    assert "page of" in call("export", *networks, "--html", "a.html")
    content = Path("a.html").read_text()
    assert "A committee of 3 networks on scikit-learn digits" in content
    assert "test digits" in content


def test_the_network_of_the_package_in_a_page(capsys):
    assert main(["export", "--html", "a.html"]) == 0
    out, err = capsys.readouterr()
    assert "a.html: a page of" in out
    assert err.startswith("note: no network is named: that of the package is used, net1")
    assert b'"net1: 841-1000-500-10"' in Path("a.html").read_bytes()


def test_float16_halves_the_files(call):
    path = write("net.safetensors", (841, 400, 10))
    call("export", path, "--html", "32.html", "--safetensors", "32.safetensors")
    options = "--precision", "float16"
    call("export", path, "--html", "16.html", "--safetensors", "16.safetensors", *options)
    saved = [
        Path(f"32.{kind}").stat().st_size - Path(f"16.{kind}").stat().st_size
        for kind in ("safetensors", "html")
    ]
    n_bytes = 2 * (841 * 400 + 400 + 400 * 10 + 10)
    assert saved == pytest.approx([n_bytes, 4 / 3 * n_bytes], rel=0.001)
    assert same_weights(read_network("32.safetensors")[0], read_network(path)[0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("draw missing", "missing does not exist: expected the folder of a run"),
        ("draw ''", "'', expected a path"),
        ("draw empty", "empty holds no best.safetensors"),
        ("draw letters.safetensors", "grey pictures of one object"),
        ("export net.safetensors large.safetensors --html a.html", "float16 halves it"),
        ("export net.safetensors net.safetensors --safetensors a", "2 networks for a"),
        ("export net.safetensors --onnx a.onnx --precision float16", "or --html"),
        ("export net.safetensors letters.safetensors --html a.html", "letters"),
    ],
)
def test_refusals(refusal, opened, monkeypatch, arguments, said):
    monkeypatch.setattr(page, "MAX_BYTES", 100_000)
    Path("empty").mkdir()
    write("net.safetensors")
    write("large.safetensors", (841, 30, 10))
    shape = NetworkInput("letters", (7, 5), (7, 5)).to_metadata()
    write_network("letters.safetensors", Network((35, 3), 1), shape)
    assert said in refusal(*shlex.split(arguments))
    assert not opened
