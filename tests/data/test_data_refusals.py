"""Data that the package refuses, each in one line with certain words."""

import gzip
import io
import os
import struct
from pathlib import Path

import msgspec
import numpy as np
import pytest

from idx_files import small_set, write_set, zipped
from mlpcore import Dataset, dataset
from mlpcore.data.digit import find_digit
from mlpcore.data.idx import FILES, decode
from mlpcore.data.image_files import read_picture
from mlpcore.data.strokes import draw_strokes
from mlpcore.data.summary import DataSummary
from mlpcore.store.documents import from_json, to_json
from small_runs import refusal

X, Y, X_TEST, Y_TEST = small_set().values()
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES
DIGITS = dataset.load(name="digits")
IMAGES = DIGITS.train_images[:2]
RECORD = msgspec.to_builtins(DataSummary.of(DIGITS))
BIT = (X_TEST.max() == X_TEST).astype(np.int64)
OBJECTS = np.array([1, "a"], object)
NO_TEST = {"X_test": None, "y_test": None}


def arrays(**changes):
    return Dataset.from_arrays(**{"X": X, "y": Y, "X_test": X_TEST, "y_test": Y_TEST} | changes)


def folder(file, array):
    """A folder in which one file has another array."""
    return dataset.load(write_set("folder", {**small_set(), file: array}))


def npz(**arrays):
    np.savez("set.npz", **arrays)
    return dataset.load("set.npz")


def npy(head):
    """A folder of .npy files, of which one has another type in its head."""
    os.mkdir("set")
    for key, array in (("X", X), ("y", Y)):
        np.save(f"set/{key}.npy", array)
    written(Path("set/X.npy").read_bytes().replace(b"'|u1'", head), "set/X.npy", str)
    return dataset.load("set")


def written(content, name="set.csv", read=dataset.load):
    """The data that are read from a file with some content."""
    Path(name).write_bytes(content)
    return read(name)


def idx(content):
    return decode(io.BytesIO(content), "file", 99)


def record(**changes):
    return from_json(to_json(RECORD | changes), DataSummary)


REFUSED = [
    # arrays
    (lambda: arrays(X=X[:, :, 0]), "X_test holds images of 4x5, expected 2x2"),
    (lambda: arrays(X=X.reshape(12, -1)), "X has the shape (12, 20): expected grey images"),
    (lambda: arrays(X=np.zeros((12, 4, 5, 3))), "expected grey images"),
    (lambda: arrays(X=np.zeros((12, 2, 2000), np.uint8)), "sides of 2 to 1024 pixels"),
    (lambda: arrays(X=np.where(X > 250, np.nan, X)), "X holds NaN or infinity: expected"),
    (lambda: arrays(X=[X[0], X[1, 1:]]), "X is not an array: expected real numbers in equal rows"),
    (lambda: arrays(X=np.zeros((12, 4, 5), int)), "X: range of values 0 to 0: expected"),
    (lambda: arrays(X=X / 255, X_test=1e308 * BIT), "X_test from 0 to 1e+308: expected 0 to 1"),
    (lambda: arrays(X=X / 255, X_test=2 * BIT - 1.0), "X_test from -1 to 1: expected 0 to 1"),
    (lambda: arrays(X_test=BIT / 1), "X_test from 0 to 1: expected 0 to 255, as in training"),
    (lambda: arrays(value_range=(0, 16), X=X / 16, X_test=BIT / 1), "X_test from 0 to 1: expect"),
    (lambda: arrays(X=memoryview(X)), "X is <memory at "),
    (lambda: arrays(X=[*X[1:], np.ma.masked_less(X[0], 99)]), "X holds masked values: expected no"),
    (lambda: arrays(y=[[1], [1, 2]] * 6), "y is not an array: expected a label for each image"),
    (lambda: arrays(y=np.zeros(12)), "y has 1 classes, such as 0.0: expected 2 to 256"),
    (lambda: arrays(y_test=Y_TEST + 1), "y_test holds the label 3, which is out of range"),
    (lambda: arrays(y=np.eye(12)), "as y.argmax(axis=1) makes them from one-hot rows"),
    (lambda: arrays(y=np.where(Y > 0, Y, np.nan)), "y holds labels that are not finite"),
    (lambda: arrays(y=[1, "1", 2] * 4), "y holds the label 1, which becomes '1' among the others"),
    (lambda: arrays(y=[2**53 + 1, 2.0**53, 2] * 4), "which becomes 9007199254740992.0"),
    (lambda: arrays(value_range=255), "value_range 255: expected two numbers"),
    (lambda: arrays(similar_labels=(1, 7)), "similar label 7: expected one of the labels"),
    (lambda: arrays(**NO_TEST, test_size=1), "test_size 1: expected a share"),
    (lambda: arrays(**NO_TEST, test_size=0.01), "12 images: 0.01 of each class leave none"),
    # folders, and what stands for one
    (lambda: folder(TRAIN_LABELS, Y[:11]), f"folder/{TRAIN_LABELS} holds 11 labels, expected 12"),
    (lambda: folder(TEST_LABELS, X_TEST), f"folder/{TEST_LABELS} has the shape (6, 4, 5)"),
    (lambda: dataset.load("empty"), "empty holds no training images: expected a folder of IDX"),
    (lambda: dataset.load("absent"), "cannot read "),
    (lambda: dataset.load(3), "path is 3, expected a folder of IDX files, .npy files or "),
    (lambda: dataset.load(name="MNIST"), "expected None, 'mnist' or 'digits'"),
    (lambda: dataset.load(".", name="digits"), "data folder '.' together with"),
    (lambda: dataset.load(write_set("folder", small_set()), name="mnist"), "folder is not MNIST's"),
    # IDX files
    (lambda: idx(struct.pack(">I", 0x804) + bytes(100)), "starts with 0x00000804, expected"),
    (lambda: idx(struct.pack(">II", 0x803, 1)), "expected 16 bytes of header, found 8"),
    (lambda: idx(struct.pack(">II", 0x801, 9) + bytes(8)), "expected 17 bytes for the 9"),
    (lambda: idx(zipped(struct.pack(">II", 0x801, 9) + bytes(10))), "found more"),
    # other files
    (lambda: npz(arr=X), "set.npz holds arr.npy: expected x_train"),
    (lambda: npz(x_train=X, y_train=OBJECTS), "y_train is not an array of numbers or text: Object"),
    *((lambda bad=bad: npy(bad), "set: X is not an array of") for bad in (b"{}", b"[" * 900)),
    *(
        (lambda bad=bad: written(bad), "set.csv is not a table of images:")
        for bad in (b"1,2\n1,2,3\n", b"1,a\n2,b\n1,c", b"\0", "1,é,3\n1,x,3".encode())
    ),
    (lambda: written(b"1,2,3\n2,5\n"), "columns changed from 3 to 2 at row 2; expected a label"),
    (lambda: written(b"1,2\n2,nan\n"), "set.csv: pixels holds NaN or infinity"),
    (lambda: written(b"1\n2\n"), "it has no pixels"),
    (lambda: written(b"label,a\n1,2\n,3\n2,3\n"), "its row 2 holds no label"),
    (lambda: written(b"a,label,class\n1,2,3"), "columns 'label' and 'class' may both hold labels"),
    (lambda: dataset.load("x" * 300), "File name too long"),
    (lambda: dataset.load(os.fsdecode(b"\xe9")), "\\udce9': expected text in UTF-8"),
    *(
        (lambda bad=bad: written(f"{bad}\n".encode() * 2), f"set.csv: labels: {words}")
        for bad, words in (
            ("01,1\n1,1", "'01' and '1' would be one class: expected one spelling"),
            ("1e3,1\n1000,1", "'1e3' and '1000' would be one"),
            ("a,1\na\0,1", "'a' and 'a\\x00' would be one"),
        )
    ),
    *(
        (lambda bad=bad: written(b"2,5,6\n1,%s,3\n" % bad), "table of images: its row 2 holds '")
        for bad in (b"", b"NA", b"?", b"1O", b"1_0")
    ),
    (lambda: written(b"0,1,2,3,1\n1,2,1,4,0\n" * 9), "labels may be in the first or in the last"),
    (lambda: written(b"a", "a"), "a is of an unknown kind: expected a folder"),
    (lambda: written(b"a", "a.tar.gz"), "of an unknown kind: unpack it; expected"),
    (lambda: written(gzip.compress(b"\x80"), "mnist.pkl.gz"), "which may run any code, where you"),
    (lambda: written(b"", "a.parquet"), "not read here: load it with pandas, and"),
    (lambda: npz(X=X, y=np.array(["\ud800", "b", "c"])[Y]), "the label '\\ud800': expected text"),
    (lambda: npz(X=X, y=np.array([2**21, 97], "<u4").view("U1")[Y % 2]), "but 2,097,152: exp"),
    (lambda: written(b"\0\0\0\x18ftypheic", "a", read_picture), "JPEG, as from heif-convert"),
    (lambda: written(b"%PDF-1.4", "a", read_picture), "a is a PDF document: expected PNG or"),
    # held-out images
    (lambda: DIGITS.hold_out(1441), "1,441 training images to hold out"),
    # what runs record
    (lambda: record(other=1), "unknown field `other`"),
    (lambda: record(held_out=356), "held_out 356: expected a whole number from 0 to 355"),
    (lambda: record(pixels={"image_shape": [0, 29], "pixel_shape": [8, 8]}), "Expected `int` >= 1"),
    (lambda: record(classes=[1, 2]), "2 classes, expected 10"),
    (lambda: DataSummary.of(arrays()).load(), "were arrays in memory: expected --data FILE.npz"),
    # values and sizes
    (lambda: DIGITS.as_inputs("Unit"), "input range 'Unit': expected signed or unit"),
    # images without a digit, and classes without strokes
    (lambda: find_digit(np.zeros((100, 7)), "a"), "a: 7 x 100 pixels, expected"),
    *(
        (lambda bad=bad: draw_strokes(IMAGES, Y[:2], bad, 0.5, 1), "': expected 1 and 7")
        for bad in (("a", "b", "c"), (0, 1, 2), tuple("078"))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert words in refusal(call)
