"""Data as people have them: EMNIST's files, other types of IDX, .npy and CSV files, pictures."""

import gzip
import shutil
import struct

import numpy as np
import pytest
from PIL import Image

from idx_files import idx_bytes, small_set
from mlpcore.data import tables
from mlpcore.data.class_folders import pictures_in
from mlpcore.data.dataset import load
from mlpcore.data.idx import FILES, read_idx
from mlpcore.data.npz import KEYS
from mlpcore.data.pictures import read_grey
from mlpcore.data.summary import DataSummary
from small_runs import refusal

FOUR = tuple(small_set(5, 5).values())
X, Y, X_TEST, Y_TEST = FOUR
NAMES = [file.replace("t10k", "test") for file in FILES]


@pytest.fixture
def expected(tmp_path):
    """The same data in a .npz file."""
    np.savez(tmp_path / "set.npz", **dict(zip(("X", "y", "X_test", "y_test"), FOUR)))
    return load(tmp_path / "set.npz")


def assert_loads(path, expected):
    """The path has these data, and so have what a run records of it."""
    data = load(path)
    assert DataSummary.of(data).sha256 == DataSummary.of(expected).sha256
    assert data.classes == expected.classes
    assert DataSummary.of(DataSummary.of(data).load()) == DataSummary.of(data)


def write_emnist(folder, split, images=lambda x: x.swapaxes(1, 2)):
    for file, array in zip(NAMES, FOUR):
        content = idx_bytes(images(array) if array.ndim == 3 else array)
        (folder / f"emnist-{split}-{file}.gz").write_bytes(gzip.compress(content))


def test_emnist_is_upright_and_one_of_its_sets_is_named(tmp_path, expected):
    write_emnist(tmp_path, "letters")
    assert_loads(tmp_path, expected)
    write_emnist(tmp_path, "digits", images=lambda x: 255 - x)
    said = refusal(load, tmp_path)
    assert "holds several data sets (emnist-digits-, emnist-letters-): expected the path" in said
    assert_loads(tmp_path / "emnist-letters-train-images-idx3-ubyte.gz", expected)
    (tmp_path / "emnist-digits-test-labels-idx1-ubyte.gz").unlink()
    said = refusal(load, tmp_path / "emnist-digits-train-images-idx3-ubyte.gz")
    assert "lacks emnist-digits-t10k-labels-idx1-ubyte (" in said


def test_the_class_is_the_first_column_of_qmnists_labels(tmp_path, expected):
    for file, array in zip(NAMES, FOUR):
        content, name = idx_bytes(array), file
        if "labels" in file:
            columns = np.arange(8 * len(array)).reshape(-1, 8)
            columns[:, 0], name = array, file.replace("idx1-ubyte", "idx2-int")
            content = struct.pack(">3I", 0xC02, len(array), 8) + columns.astype(">i4").tobytes()
        (tmp_path / f"qmnist-{name}.gz").write_bytes(gzip.compress(content))
    assert_loads(tmp_path, expected)
    two = struct.pack(">3I", 0xC02, len(Y_TEST), 2) + bytes(8 * len(Y_TEST))
    (tmp_path / "qmnist-test-labels-idx2-int.gz").write_bytes(two)
    assert "has 2 columns of labels: expected one, or QMNIST's 8" in refusal(load, tmp_path)


@pytest.mark.parametrize(
    ("code", "kind"), [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")]
)
def test_idx_files_of_other_types(tmp_path, code, kind):
    array = np.arange(-3, 9).astype(kind).reshape(2, 3, 2)
    header = struct.pack(">BBBB3I", 0, 0, code, 3, *array.shape)
    path = tmp_path / "file"
    path.write_bytes(header + array.astype(f">{kind}").tobytes())
    found = read_idx(path)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, array)
    path.write_bytes(header + bytes(array.nbytes - 1))
    assert "is damaged: expected" in refusal(read_idx, path)


def test_npy_files(tmp_path, expected):
    folder = tmp_path / "set"
    folder.mkdir()
    for keys, array in zip(KEYS, FOUR):
        np.save(folder / f"{keys[0]}.npy", array)
    assert_loads(folder, expected)
    (folder / "y_train.npy").unlink()
    assert "set holds x_test.npy, x_train.npy, y_test.npy: expected" in refusal(load, folder)


HEAD = ["label", *(f"pixel{k}" for k in range(25))]


def write_csv(path, images, labels, delimiter=",", head=None, last=False):
    rows = [] if head is None else [head]
    for image, label in zip(images.reshape(len(images), -1).tolist(), labels):
        rows.append([*image, label] if last else [label, *image])
    path.write_text("".join(delimiter.join(map(str, row)) + "\n" for row in rows))


@pytest.mark.parametrize(
    "layout",
    [{}, {"head": HEAD}, {"head": HEAD[::-1], "last": True}, {"delimiter": ";"}],
)
def test_csv_files(tmp_path, expected, layout):
    for part, arrays in (("train", FOUR[:2]), ("test", FOUR[2:])):
        write_csv(tmp_path / f"set-{part}.csv", *arrays, **layout)
    assert_loads(tmp_path / "set-train.csv", expected)


def test_other_csv_files(tmp_path, expected, monkeypatch):
    path, test = tmp_path / "emnist-train.csv", tmp_path / "emnist-test.csv"
    write_csv(path, X.swapaxes(1, 2), np.array(["a", "b", "c"])[Y])
    write_csv(test, X_TEST.swapaxes(1, 2), np.array(["a", "b", "c"])[Y_TEST])
    np.testing.assert_array_equal(load(path).train_images, expected.train_images)
    assert load(path).classes == ("a", "b", "c")
    test.write_text("\n".join(["0," * 24 + "0"] * 6))  # without labels
    assert load(path).notice.endswith("20% of the images are for the test")
    for content in ("", "1,2\n1,2,3\n", "1,a\n2,b\n1,c", "\0", "1,é,3\n1,x,3", "1,2\n2,nan\n"):
        path.write_text(content)
        assert str(path) in refusal(load, path)
    monkeypatch.setattr(tables, "MAX_TEXT", 9)
    path.write_text("1,2\n" * 3)
    assert "expected at most 9 bytes" in refusal(load, path)


def write_pictures(folder, images, labels):
    for k, (image, label) in enumerate(zip(images, labels)):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / str(label) / f"{k:02}.png")


@pytest.mark.parametrize("light", [False, True])
def test_a_folder_of_pictures_for_each_class(tmp_path, light):
    """The border tells what is the ground."""
    parts = []
    for images, labels in ((X, Y), (X_TEST, Y_TEST)):
        order = np.argsort(labels, kind="stable")
        framed = images[order].copy()
        framed[:, [0, -1]] = framed[:, :, [0, -1]] = 0
        parts += [framed, labels[order]]
    np.savez(tmp_path / "set.npz", **dict(zip(("X", "y", "X_test", "y_test"), parts)))
    invert = (lambda x: 255 - x) if light else np.asarray
    folder = tmp_path / "set"
    write_pictures(folder / "train", invert(parts[0]), parts[1])
    write_pictures(folder / "test", invert(parts[2]), parts[3])
    assert_loads(folder, load(tmp_path / "set.npz"))
    assert load(folder / "train").notice.endswith("20% of the images are for the test")
    assert [path.parent.name for path in pictures_in(folder / "test")] == list("001122")
    Image.fromarray(X[0, :4]).save(folder / "train" / "1" / "small.png")
    assert "small.png has 5 x 4 pixels: expected 5 x 5, as" in refusal(load, folder)
    shutil.rmtree(folder / "train")
    assert "set lacks train-images-idx3-ubyte" in refusal(load, folder)


def test_what_is_to_be_converted_is_said(tmp_path):
    for name, content, words in (
        ("a.heic", b"\0\0\0\x18ftypheic", "is a HEIC or AVIF picture: expected PNG or JPEG, as"),
        ("a.pdf", b"%PDF-1.4", "is a PDF document: expected PNG or JPEG, as from pdftoppm"),
    ):
        (tmp_path / name).write_bytes(content)
        assert words in refusal(read_grey, tmp_path / name)
    (tmp_path / "mnist.pkl.gz").write_bytes(gzip.compress(b"\x80"))
    assert "a pickle may run any code; where you trust it" in refusal(
        load, tmp_path / "mnist.pkl.gz"
    )
