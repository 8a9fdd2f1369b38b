"""Pictures that stay in their file: what is made of them is what is made of arrays in memory."""

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from test_formats import FORMATS, FOUR, idx_set, npy

from emulated import emulated_backend, needs_emulation
from mlpcore import Dataset, Trainer, backends
from mlpcore.data import on_disk
from mlpcore.data.dataset import load
from mlpcore.data.idx import FILES
from mlpcore.data.on_disk import BytesOnDisk
from mlpcore.data.summary import DataSummary
from small_runs import make_config, refusal, same_weights

KINDS = {
    **{name: FORMATS[name] for name in ("IDX", "EMNIST")},
    "npy of rows": lambda folder: npy(folder, (-1, 49)),
    "npy with a channel": lambda folder: npy(folder, (-1, 1, 7, 7)),
    "npy without a test": lambda folder: npy(folder, n=2),
}


@pytest.fixture(autouse=True)
def all_stay_on_disk(monkeypatch):
    monkeypatch.setattr(on_disk, "IN_MEMORY", 0)


@pytest.fixture(params=KINDS)
def path(tmp_path, request):
    return KINDS[request.param](tmp_path)


def trained(data):
    trainer = Trainer(make_config(epochs=2), data, backends.get("scalar", 1))
    assert trainer.run()
    return trainer


def test_they_give_the_same_as_in_memory(path):
    data = load(path)
    expected = Dataset.from_arrays(*FOUR[: 2 if data.notice else 4])
    assert isinstance(data.train_pixels, BytesOnDisk) and isinstance(data.test_pixels, BytesOnDisk)
    assert DataSummary.of(data).sha256 == DataSummary.of(expected).sha256
    for each, other in ((data, expected), (data.hold_out(2), expected.hold_out(2))):
        assert np.array_equal(each.train_images, other.train_images)
        assert np.array_equal(each.test_images[::2], other.test_images[::2])
        one, another = trained(each), trained(other)
        assert one.state.history[-1].test_errors == another.state.history[-1].test_errors
        assert same_weights(one.state.network, another.state.network)


def test_all_are_for_the_test(tmp_path):
    data = load(npy(tmp_path, n=2))
    whole, parts = data.all_for_test(), (data.train_images, data.test_images)
    assert isinstance(whole.test_pixels, BytesOnDisk)
    assert np.array_equal(whole.test_images, np.concatenate(parts))


@needs_emulation
def test_a_device_holds_the_bytes(tmp_path, monkeypatch):
    """They come in parts, without a copy of all on the host."""
    monkeypatch.setattr("mlpcore.data.pixels._BATCH_PIXELS", 100)
    pixels = load(idx_set(tmp_path)).train_pixels
    assert np.array_equal(np.asarray(emulated_backend().put(pixels)), FOUR[0])


def test_pickled_they_are_arrays(tmp_path):
    pixels = load(idx_set(tmp_path)).train_pixels
    for rows in (slice(3, 9), slice(9, 3, -2), slice(9, 3, -1), slice(0, 0), np.array([7, 7, 0])):
        assert np.array_equal(pickle.loads(pickle.dumps(pixels[rows])), FOUR[0][rows])
    assert np.array_equal(np.asarray(pixels[::2][1:][np.arange(3)]), FOUR[0][2:8:2])


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="asks Linux")
def test_the_system_is_told_which_rows_its_cache_lacks(tmp_path, monkeypatch):
    pixels, told, rows = load(idx_set(tmp_path)).train_pixels, [], np.array([7, 0, 3, 7])
    read, places = os.preadv, [16 + 49 * row for row in rows]

    def lacks(file, buffers, place, flags):
        if place == places[1]:
            raise BlockingIOError
        return read(file, buffers, place, flags)

    monkeypatch.setattr(os, "preadv", lacks)
    monkeypatch.setattr(os, "posix_fadvise", lambda *what: told.append(what[1:]))
    assert np.array_equal(np.asarray(pixels[rows]), FOUR[0][rows])
    assert told == [(place, 49, os.POSIX_FADV_WILLNEED) for place in places[1:]]


def test_values_of_another_range_are_read(tmp_path):
    data = load(npy(tmp_path), value_range=(-5, 300))
    assert isinstance(data.train_pixels, np.ndarray) and not data.pixels.whole


def rewrite(file):
    """As many other bytes, which the time of the file tells."""
    file.write_bytes(bytes(file.stat().st_size))
    os.utime(file, (0, 0))


CHANGES = {
    "has changed: expected the bytes that it held": rewrite,
    "has changed: expected": lambda file: os.truncate(file, file.stat().st_size - 1),
    "No such file": Path.unlink,
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_file_that_changes_ends_a_training_in_one_line(tmp_path, words):
    data, file = load(idx_set(tmp_path)), tmp_path / FILES[0]
    trainer = Trainer(make_config(epochs=2), data, backends.get("scalar", 1))
    CHANGES[words](file)
    found = refusal(trainer.run)
    assert str(file) in found and words in found


@pytest.mark.parametrize("n, words", [(11, "damaged"), (13, "damaged"), (2**31 - 1, "too large")])
def test_a_header_that_lies_is_refused(tmp_path, n, words):
    file = idx_set(tmp_path) / FILES[0]
    file.write_bytes(struct.pack(">4I", 0x803, n, 7, 7) + FOUR[0].tobytes())
    assert f"{file} is {words}: " in refusal(load, tmp_path)
