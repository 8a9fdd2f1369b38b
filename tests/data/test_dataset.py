"""Data sets: the search for MNIST, arrays and how they are scaled, and what runs record."""

import dataclasses
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
from PIL import Image

from idx_files import idx_bytes, small_set, write_set, zipped
from mlpcore import Dataset, dataset
from mlpcore.data import mnist
from mlpcore.data.dataset import load
from mlpcore.data.idx import FILES
from mlpcore.data.summary import DataSummary
from mlpcore.store.documents import from_json, to_json
from small_runs import isolate, refusal

TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES
FOUR = X, Y, X_TEST, Y_TEST = tuple(small_set().values())
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
    data = Dataset.from_arrays(*arrays.values())
    monkeypatch.setattr(mnist, "IDENTITY", (data.train_pixels.shape, data.sha256))
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
    "BadGzipFile": b"<html>Please log in</html>",
    "MD5": zipped(idx_bytes(np.zeros(6, np.uint8))),
    "end-of-stream": zipped(idx_bytes(small_set()[TEST_LABELS]))[:-3],
    "invalid distance": zipped(bytes(9))[:10] + b"\x4b\x4c\x04\xff\x00" + bytes(8),
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
    assert "MNIST was not found" in refusal(load, name="mnist")
    assert "MNIST was not found" in refusal(loaded.hold_out, 10_000)  # so there are few
    cache.parent.mkdir(exist_ok=True)
    shutil.rmtree(cache, ignore_errors=True)
    cache.write_text("a file where the folder should be")
    assert f"{cache}: Not a directory" in load().notice


def test_hold_out():
    part = EMBEDDED.hold_out(400)
    assert part.held_out == 400 == len(EMBEDDED.train_images) - len(part.train_images)
    assert np.array_equal(part.test_images, EMBEDDED.train_images[1042:])
    assert np.array_equal(part.train_labels, EMBEDDED.train_labels[:1042])
    assert np.array_equal(part.test_labels, EMBEDDED.train_labels[1042:])
    for each in (part, EMBEDDED):
        summary = DataSummary.of(each)
        assert DataSummary.of(summary.load()) == summary
    order = np.argsort(EMBEDDED.train_labels, kind="stable")[::-1]  # grouped by class
    images, labels = EMBEDDED.train_pixels[order], EMBEDDED.train_labels[order]
    held = dataclasses.replace(EMBEDDED, train_pixels=images, train_labels=labels).hold_out(400)
    zeros = held.test_pixels[held.test_labels == 0]
    assert np.array_equal(zeros, images[labels == 0][-len(zeros) :])
    assert np.ptp(np.bincount(held.test_labels) / np.bincount(labels)) < 0.01


def sets(data):
    return data.train_images, data.train_labels, data.test_images, data.test_labels


def assert_same(data, expected):
    for a, b in zip(sets(data), sets(expected), strict=True):
        assert a.dtype == b.dtype and a.flags.c_contiguous
        np.testing.assert_array_equal(a, b)


SHAPED = [np.asarray, np.asfortranarray, lambda x: x[..., None], lambda x: x[:, None]]
SHAPED += [lambda x: [Image.fromarray(each) for each in x]]


@pytest.mark.parametrize("shaped", SHAPED)
def test_bytes_in_any_shape(shaped):
    arrays = shaped(X), Y[:, None], shaped(X_TEST), Y_TEST.tolist()
    data = Dataset.from_arrays(*arrays, name="letters")
    assert_same(data, Dataset.from_arrays(*FOUR))
    assert (data.name, data.n_classes, data.classes) == ("letters", 3, (0, 1, 2))
    assert (data.pixels.pixel_shape, data.pixels.value_range) == ((4, 5), (0, 255))
    assert data.similar_labels == ()


CONVERTED = [
    (lambda x: x.astype(np.int64), (0, 255)),
    (lambda x: x.astype(np.uint16) * 257, (0, 65535)),
    (lambda x: x.astype(np.int16) - 100, (-100, 155)),
    (lambda x: x / 255, (0, 1)),
]


@pytest.mark.parametrize(("convert", "value_range"), CONVERTED)
def test_other_numbers_have_the_range_of_the_training_images(convert, value_range):
    x = X.copy()
    x[0, 0, :2] = 0, 255
    data = Dataset.from_arrays(convert(x), Y, convert(X_TEST), Y_TEST)
    assert data.pixels.value_range == value_range
    assert (data.train_images.min(), data.train_images.max()) == (-1, 1)
    as_bytes = Dataset.from_arrays(x, Y, X_TEST, Y_TEST)
    for a, b in zip(sets(data), sets(as_bytes)):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-7)  # two roundings near 1
    if value_range == (0, 255):  # the same bits
        assert_same(data, as_bytes)


def test_bytes_below_half_have_their_own_range(monkeypatch):
    monkeypatch.setattr("mlpcore.data.pixels.SCANNED", len(X) // 2)  # images at a time
    levels = X // np.uint8(18), Y, X_TEST // np.uint8(18), Y_TEST
    levels[0][-1, 0, 0] = 15
    data = Dataset.from_arrays(*levels)
    assert data.pixels.value_range == (0, 15)
    assert_same(data, Dataset.from_arrays(levels[0] * 1.0, Y, levels[2] * 1.0, Y_TEST))
    assert Dataset.from_arrays(0 * levels[0], *levels[1:]).pixels.value_range == (0, 255)


def test_rows_and_a_range_that_is_given(tmp_path):
    rows, test_rows = (x[:, :, :4].reshape(len(x), 16) for x in (X, X_TEST))
    squares = Dataset.from_arrays(rows, Y, test_rows, Y_TEST)
    assert_same(squares, Dataset.from_arrays(X[:, :, :4], Y, X_TEST[:, :, :4], Y_TEST))
    data = Dataset.from_arrays(X // 16, Y, X_TEST // 16, Y_TEST, value_range=(0, 15))
    expected = Dataset.from_arrays(X // 16 * np.uint8(17), Y, X_TEST, Y_TEST)
    np.testing.assert_allclose(data.train_images, expected.train_images, rtol=0, atol=2e-7)
    assert data.pixels.value_range == (0, 15)
    np.savez(tmp_path / "set.npz", X=X // 16, y=Y)
    data = load(tmp_path / "set.npz", value_range=(0, 20))
    assert data.pixels.value_range == (0, 20)  # by which a run finds the file again
    assert DataSummary.of(DataSummary.of(data).load()) == DataSummary.of(data)
    bright = Dataset.from_arrays(X.astype(int) // 2 + 100, Y, X_TEST, Y_TEST)
    assert bright.pixels.value_range[0] == 0  # the background, although no pixel is so dark
    beyond = Dataset.from_arrays(X.astype(int), Y, X_TEST.astype(int) * 2, Y_TEST)
    assert beyond.test_images.max() > 2  # not cut off, and no range of its own
    bright = Dataset.from_arrays(X / 255, Y, X_TEST / 205, Y_TEST)  # as resizing may exceed white
    assert 1 < bright.test_images.max() < 1.5
    mask = Dataset.from_arrays(X > 99, Y, X_TEST > 99, Y_TEST)
    assert_same(mask, Dataset.from_arrays((X > 99) * 255, Y, (X_TEST > 99) * 255, Y_TEST))


@pytest.mark.parametrize("names", [["b", "a", "c"], [-1, 300, 10**12], np.array([5, 3, 4], object)])
def test_labels_of_any_type(names):
    names = np.asarray(names)
    data = Dataset.from_arrays(X, names[Y], X_TEST, names[Y_TEST], similar_labels=[names[0]])
    assert data.classes == tuple(sorted(names.tolist()))
    assert [data.classes[k] for k in data.train_labels] == names[Y].tolist()
    assert [data.classes[k] for k in data.test_labels] == names[Y_TEST].tolist()
    assert data.similar_labels == (data.classes.index(names[0]),)
    record = from_json(to_json(DataSummary.of(data)), DataSummary)
    assert (record, record.classes) == (DataSummary.of(data), data.classes)


def test_a_drawn_test_set():
    """It has its share of each class, to the nearest; the rest is for training."""
    labels = np.repeat([0, 1, 3], [20, 9, 1])
    images = np.repeat(np.arange(226, 256, dtype=np.uint8), 9).reshape(-1, 3, 3)
    data, again, other = (
        Dataset.from_arrays(images, labels, test_size=0.6, seed=seed) for seed in (4, 4, 5)
    )
    assert_same(again, data)
    assert np.any(other.test_images != data.test_images)
    train, test = (np.rint((x[:, 0, 0] + 1) * 127.5).astype(int) - 226 for x in sets(data)[::2])
    assert sorted([*train, *test]) == list(range(30))
    assert labels[test].tolist() == [data.classes[k] for k in data.test_labels]
    assert np.bincount(labels[test]).tolist() == [12, 5]  # round(0.6), but never all
