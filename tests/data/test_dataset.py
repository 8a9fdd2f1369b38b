"""Data sets: folders of IDX files, the search for MNIST, the embedded digits, what runs record."""

import functools
import hashlib
import os
import re
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from idx_files import idx_bytes, small_set, write_set, zipped
from mlpcore import dataset
from mlpcore.data import mnist
from mlpcore.data.dataset import load
from mlpcore.data.idx import FILES
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from small_runs import isolate, refusal

TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES
EMBEDDED, FETCH = load(name="digits"), mnist.fetch


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The empty cache; data sets of this machine and the network are out of reach."""
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(mnist, "fetch", FETCH)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(mnist, "MIRRORS", ["http://127.0.0.1:1/"])  # where nobody listens
    return mnist.cache_folder()


@pytest.fixture
def published(monkeypatch):
    """A small data set that stands for the published MNIST."""
    arrays = small_set()
    sums = {file: hashlib.md5(idx_bytes(arrays[file])).hexdigest() for file in mnist.MD5}
    monkeypatch.setattr(mnist, "MD5", sums)
    return arrays


@pytest.fixture
def mirrors(tmp_path, published, monkeypatch):
    """Folders that two mirrors on the loopback device serve, the first of them empty."""
    folders = [tmp_path / "served" / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir(parents=True)
    for file, array in published.items():
        (folders[1] / f"{file}.gz").write_bytes(zipped(idx_bytes(array)))
    handler = functools.partial(SimpleHTTPRequestHandler, directory=tmp_path / "served")
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *args: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(mnist, "MIRRORS", [f"{address}/first/", f"{address}/second/"])
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folders
        server.shutdown()


def test_search_order(tmp_path, cache, published, monkeypatch):
    write_set(cache, published)
    assert load().source == str(cache)
    local = write_set(Path.cwd() / "data" / "mnist", published)
    assert load().source == str(local)
    variable = write_set(tmp_path / "variable", published)
    monkeypatch.setenv("MLPCORE_DATA", str(variable))
    assert load().source == str(variable)
    argument = write_set(tmp_path / "argument", published)
    (argument / f"{TEST_LABELS}.gz").mkdir()  # as some archives unpack
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded = load("~/argument", name="mnist")
    assert (loaded.source, loaded.name, loaded.notice) == (str(argument), "MNIST", "")
    assert DataSummary.of(loaded).load().source == str(argument)
    assert (loaded.similar_labels, loaded.n_classes) == ((1, 7), 3)
    assert load(name="digits").name == dataset.EMBEDDED
    (variable / TEST_LABELS).unlink()  # an incomplete folder is not passed over
    assert re.match(f"{variable} lacks {TEST_LABELS}.* MLPCORE_DATA names", refusal(load))
    monkeypatch.setenv("MLPCORE_DATA", "")
    assert load().source == str(local)
    (local / TEST_LABELS).unlink()
    assert "lacks" in refusal(load)
    x, y, x_test, y_test = published.values()
    np.savez(tmp_path / "letters.npz", X=x, y=y.astype(int), X_test=x_test, y_test=y_test)
    data = load(tmp_path / "letters.npz", name="mnist")
    assert (data.name, data.similar_labels) == ("MNIST", (1, 7))
    assert DataSummary.of(DataSummary.of(data).load()) == DataSummary.of(data)


NAMES = {
    "MNIST": "MNIST, another than the published",
    "scikit-learn digits": "scikit-learn digits, another than the published",
    "mnist": "mnist",
    "a\xa0b": r"'a\xa0b'",
}


@pytest.mark.parametrize("folder, name", NAMES.items())
def test_other_data_do_not_pass_for_known_data(tmp_path, folder, name):
    """And the summary of a run finds them again."""
    loaded = load(write_set(tmp_path / folder, small_set()))
    assert (loaded.name, loaded.similar_labels) == (name, ())
    assert bool(loaded.notice) == (folder.lower() == "mnist")
    summary = DataSummary.of(loaded)
    assert DataSummary.of(summary.load()) == summary


def test_a_damaged_cache(cache, published):
    content = bytearray((write_set(cache, published) / TRAIN_IMAGES).read_bytes())
    content[-1] ^= 1
    for damaged in (content, content[:-1]):
        (cache / TRAIN_IMAGES).write_bytes(damaged)
        assert re.match(f"{cache}.* expected .*; delete it", refusal(load))


def test_download(cache, published, mirrors, capfd):
    first, second = mirrors
    (first / f"{TRAIN_IMAGES}.gz").write_bytes((second / f"{TRAIN_IMAGES}.gz").read_bytes())
    (second / f"{TRAIN_IMAGES}.gz").unlink()  # what the first mirror gave is not fetched again
    assert load().name == "MNIST"
    assert sorted(os.listdir(cache)) == sorted(FILES)
    (second / f"{TRAIN_LABELS}.gz").unlink()
    (cache / TEST_LABELS).unlink()
    assert load().name == "MNIST"  # only what is missing is downloaded
    shutil.rmtree(second)
    assert load(download=False).source == str(cache)
    assert "".join(capfd.readouterr()) == ""


WRONG = {
    "not an IDX file": b"<html>Please log in</html>",
    "MD5": zipped(idx_bytes(np.zeros(6, np.uint8))),
    "truncated": zipped(idx_bytes(small_set()[TEST_LABELS]))[:-3],
    "sends more than": bytes(mnist.MAX_DOWNLOAD + 1),
    "HTTP 404": None,
}


@pytest.mark.parametrize("reason", WRONG)
def test_wrong_content_is_not_stored(cache, mirrors, reason):
    path, content = mirrors[1] / f"{TEST_LABELS}.gz", WRONG[reason]
    path.unlink() if content is None else path.write_bytes(content)
    loaded = load()
    assert loaded.name == dataset.EMBEDDED
    assert reason in loaded.notice and loaded.notice.isprintable()
    assert TEST_LABELS not in os.listdir(cache) and set(os.listdir(cache)) <= set(FILES)


def test_mnist_out_of_reach(cache):
    loaded = load()
    assert loaded.name == dataset.EMBEDDED
    assert str(cache) in loaded.notice and "127.0.0.1:1: ConnectionError" in loaded.notice
    assert "downloading is off" in load(download=False).notice
    with pytest.raises(InputError, match="MNIST was not found"):
        load(name="mnist")
    assert "MNIST was not found" in refusal(loaded.hold_out, 10_000)  # so there are few
    cache.parent.mkdir(exist_ok=True)
    shutil.rmtree(cache, ignore_errors=True)
    cache.write_text("a file where the folder should be")
    assert f"{cache}: Not a directory" in load().notice


def test_hold_out():
    part = EMBEDDED.hold_out(400)
    assert (len(part.train_images), len(part.test_labels), part.held_out) == (1042, 400, 400)
    assert np.array_equal(part.test_images, EMBEDDED.train_images[1042:])
    assert np.array_equal(part.train_labels, EMBEDDED.train_labels[:1042])
    for each in (part, EMBEDDED):
        summary = DataSummary.of(each)
        assert DataSummary.of(summary.load()) == summary
