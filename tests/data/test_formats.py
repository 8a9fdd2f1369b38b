"""Formats of data: each gives what its arrays give, and damage is refused in one line."""

import io
import os
import shutil
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from idx_files import idx_bytes, small_set, zipped
from mlpcore import Dataset
from mlpcore.data import arrays, idx
from mlpcore.data.class_folders import pictures_in
from mlpcore.data.dataset import load
from mlpcore.data.idx import FILES
from mlpcore.data.summary import DataSummary
from small_runs import refusal

KERAS = "x_train", "y_train", "x_test", "y_test"
HEAD = ["label", *(f"pixel{k}" for k in range(49))]

#: The arrays of a data set in the order of the classes, on dark ground.
FOUR = [*small_set(7, 7).values()]
for k in (0, 2):
    order = np.argsort(FOUR[k + 1], kind="stable")
    FOUR[k], FOUR[k + 1] = FOUR[k][order], FOUR[k + 1][order]
    FOUR[k][:, [0, -1]] = FOUR[k][:, :, [0, -1]] = 0

X, Y, X_TEST, Y_TEST = FOUR
PARTS = ("train", X, Y), ("test", X_TEST, Y_TEST)


def idx_set(folder, *, begin="", test="t10k", end="", stem="-idx", upright=True, content=idx_bytes):
    folder.mkdir(parents=True, exist_ok=True)
    for file, array in zip(FILES, FOUR):
        name, kind = begin + file.replace("t10k", test).replace("-idx", stem) + end, array.ndim
        whole = content(array if upright or kind == 1 else array.swapaxes(1, 2))
        if "labels" in file and "qmnist" in begin:
            name = name.replace("idx1-ubyte", "idx2-int")
        (folder / name).write_bytes(zipped(whole) if end else whole)
    return folder


def qmnist(array):
    if array.ndim == 3:
        return idx_bytes(array)
    columns = np.arange(8 * len(array)).reshape(-1, 8)
    columns[:, 0] = array
    return struct.pack(">3I", 0xC02, len(array), 8) + columns.astype(">i4").tobytes()


def npz(folder):
    np.savez(folder / "set.npz", **dict(zip(KERAS, map(np.asfortranarray, FOUR))))
    return folder / "set.npz"


def npy(folder, shape=(-1, 7, 7), n=4):
    """Files of the first n arrays, with the images in a shape."""
    for key, array in zip(KERAS[:n], FOUR):
        np.save(folder / f"{key}.npy", array if array.ndim == 1 else array.reshape(shape))
    return folder


def csv(folder, begin="set", delimiter=",", head=(), last=False, upright=True):
    for part, images, labels in PARTS:
        images = images if upright else images.swapaxes(1, 2)
        table = np.insert(images.reshape(len(images), 49).astype(int), 49 * last, labels, axis=1)
        rows = [head, *table] if head else table
        text = "".join(delimiter.join(map(str, row)) + "\n" for row in rows)
        (folder / f"{begin}-{part}.csv").write_text(text)
    return folder / f"{begin}-train.csv"


def zipped_csv(folder):
    path = csv(folder)
    for each in folder.iterdir():
        each.with_name(f"{each.name}.gz").write_bytes(zipped(each.read_bytes()))
        each.unlink()
    return path.with_name(f"{path.name}.gz")


def pictures(folder, invert=np.asarray):
    """A folder of pictures for each class; the border tells what is the ground."""
    for part, images, labels in PARTS:
        for k, (image, label) in enumerate(zip(images, labels)):
            path = folder / part / str(label) / f"{k:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(invert(image)).save(path)
    return folder


FORMATS = {
    "IDX": idx_set,
    "IDX with points": lambda folder: idx_set(folder, stem=".idx"),
    "gzipped IDX": lambda folder: idx_set(folder, end=".gz"),
    "EMNIST": lambda folder: idx_set(folder, begin="emnist-", test="test", upright=False),
    "QMNIST": lambda folder: idx_set(folder, begin="qmnist-", test="test", content=qmnist),
    "npz": npz,
    "npy": npy,
    "CSV": csv,
    "CSV with a head": lambda folder: csv(folder, head=HEAD),
    "CSV with labels last": lambda folder: csv(folder, head=HEAD[::-1], last=True),
    "CSV with labels last, without a head": lambda folder: csv(folder, last=True),
    "CSV with columns that have numbers": lambda folder: csv(folder, head=range(50)),
    "CSV with columns from 1 on": lambda folder: csv(folder, head=("label", *range(1, 50))),
    "gzipped CSV": zipped_csv,
    "CSV in a folder": lambda folder: csv(folder).parent,
    "torchvision's root": lambda folder: idx_set(folder / "MNIST" / "raw").parents[1],
    "CSV with semicolons": lambda folder: csv(folder, delimiter=";"),
    "CSV of EMNIST": lambda folder: csv(folder, begin="emnist", upright=False),
    "dark pictures": pictures,
}


@pytest.fixture(params=FORMATS)
def path(tmp_path, request):
    """The path of a data set in a format, alone in a folder."""
    (tmp_path / "set").mkdir()
    return FORMATS[request.param](tmp_path / "set")


def test_a_format_gives_what_its_arrays_give(path):
    """And a run finds it again."""
    data, expected = load(path), Dataset.from_arrays(*FOUR)
    summary = DataSummary.of(data)
    assert summary.sha256 == DataSummary.of(expected).sha256
    assert (data.classes, data.pixels) == (expected.classes, expected.pixels)
    assert Path(data.source).is_relative_to(path)  # or below it
    assert (data.name, data.notice) == (Path(data.source).name.removesuffix(".npz"), "")
    assert DataSummary.of(summary.load()) == summary


def test_light_pictures_are_inverted_by_what_takes_their_pixels(tmp_path):
    data, expected = load(pictures(tmp_path, lambda x: 255 - x)), Dataset.from_arrays(*FOUR)
    assert np.array_equal(data.test_images, expected.test_images) and "light" in data.notice
    assert np.array_equal(255 - data.test_pixels, expected.test_pixels)
    assert DataSummary.of(DataSummary.of(data).load()) == DataSummary.of(data)


@pytest.mark.parametrize("damage", [b"", bytes(60), b"text"])
def test_a_damaged_file_is_named(path, damage):
    file = path if path.is_file() else next(each for each in path.rglob("*") if each.is_file())
    file.write_bytes(damage)
    assert str(file if file.suffix != ".npy" else path) in refusal(load, path)


#: Labels of twelve lines, and the pixels at both ends: any, no whole numbers, or mostly ground.
LABELS = {
    "text": ("abc", [0, 200, 30, 200, 8]),
    "whole": ((0, 7, 3), [0.5, 200, 30]),
    "no number with an underscore": (("1_0", "10", "3"), [0.5, 200, 30]),
    "no digit of another script": (("٣", "10", "3"), [0.5, 200, 30]),
    "more even than the ground": ((0, 7, 3), [0] * 44 + [9]),
}


@pytest.mark.parametrize(("labels", "pixels"), LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("last", [False, True])
def test_without_a_head_labels_are_told_from_pixels(tmp_path, labels, pixels, last):
    lines = [[*map(str, row)] for row in np.resize(pixels, (12, 4))[:, :: 1 if last else -1]]
    for k, line in enumerate(lines):
        line.insert(4 * last, str(labels[k % 3]))
    (tmp_path / "set.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    assert load(tmp_path / "set.csv").classes == tuple(sorted(labels))


def test_one_of_several_sets_is_named(tmp_path):
    for begin in ("letters-", "digits-"):
        idx_set(tmp_path, begin=begin)
    expected = "holds several data sets (digits-, letters-): expected the path of a file of one"
    assert expected in refusal(load, tmp_path)
    assert load(tmp_path / f"letters-{FILES[0]}").n_classes == 3
    for name in "ab":
        (tmp_path / "above" / name).mkdir(parents=True)
        npz(tmp_path / "above" / name)
    assert "several data sets: expected one, as in a/set" in refusal(load, tmp_path / "above")
    (tmp_path / f"digits-{FILES[3]}").unlink()
    assert f"lacks digits-{FILES[3]} (" in refusal(load, tmp_path / f"digits-{FILES[0]}")


def test_test_images_without_labels_are_left_out(tmp_path):
    path, test = csv(tmp_path), tmp_path / "set-test.csv"
    test.write_text("".join(line.partition(",")[2] for line in test.open().readlines()))
    assert load(path).notice.endswith("20% of each class is kept for it")


def test_tables_of_other_columns(tmp_path):
    path = csv(tmp_path, head=HEAD)
    test = tmp_path / "set-test.csv"
    test.write_text(test.read_text().replace("pixel7,pixel8,", "pixel8,pixel7,", 1))
    assert "set-test.csv names other columns: expected those of" in refusal(load, path)


def test_no_more_is_unpacked_than_the_header_says():
    content = io.BytesIO(zipped(struct.pack(">II", 0x801, 100) + bytes(2**26)))
    tracemalloc.start()
    refusal(idx.decode, content, "file", 2**30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


TOO_LARGE = {
    "IDX": (1800, "too large: its header says 6 x 7 x 7, expected"),  # after 600 bytes of others
    "gzipped IDX": (1500, "too large: its header says 12 x 7 x 7, expected at most 500 bytes"),
    "npz": (1800, "x_train has 716 bytes: expected at most 600"),
    "CSV": (1800, "expected at most 150 bytes"),
    "gzipped CSV": (18_000, "it unpacks to more than 1,500 bytes"),
    "dark pictures": (1500, "holds more than 500 pixels"),
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_data_that_fill_the_memory_are_refused(tmp_path, kind, monkeypatch):
    memory, words = TOO_LARGE[kind]
    monkeypatch.setattr(arrays, "total_memory", lambda: memory)
    assert words in refusal(load, FORMATS[kind](tmp_path))


def test_pictures_by_class(tmp_path):
    folder = pictures(tmp_path / "set")
    assert load(folder / "train").notice.endswith("20% of each class is kept for it")
    assert [path.parent.name for path in pictures_in(folder / "test")] == list("001122")
    shutil.copytree(folder / "train" / "1", folder / "train" / "lost+found")
    other = (folder / "train").rename(folder / "Train") / "3" / "0.ico"
    other.parent.mkdir()
    (other.parent / ".hidden").touch()
    assert load(folder).notice == ""
    other.touch()
    assert "0.ico is no picture (.png, " in refusal(load, folder)
    shutil.rmtree(other.parent)
    (folder / "Train").rename(folder / "train")
    more = shutil.copytree(folder / "train" / "1", folder / "train" / "0" / "1")
    assert "0/1 holds pictures: expected all of a class in" in refusal(load, folder)
    more = more.rename(folder / "train" / "01")
    assert "'01' and '1' would be one class" in refusal(load, folder)
    more = more.rename(folder / "train" / os.fsdecode(b"\xe9"))
    assert "expected text in UTF-8" in refusal(load, folder)
    more.rename(folder / "train" / str(2**63))  # which 64 bits do not hold
    assert load(folder / "train").classes == ("0", "1", "2", str(2**63))
    Image.fromarray(X[0, :4]).save(folder / "train" / "1" / "small.png")
    assert "small.png has 7 x 4 pixels: expected 7 x 7, like" in refusal(load, folder)
    shutil.rmtree(folder / "train")
    assert "set holds no training images: expected a folder" in refusal(load, folder)
