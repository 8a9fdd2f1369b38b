"""Commands on data whose header, length, type or label is wrong; `test_formats.py` has bombs."""

import gzip
import io
import shutil
import zipfile

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import forked
from hostile import TEXTS, damaged
from idx_files import idx_bytes, small_set

COMMANDS = (
    "train --arch 3 --epochs 1 --threads 1 --out run --data",
    "preview --rows 2 --columns 2 --threads 1 --data",
)


@st.composite
def idx_folders(draw):
    """Four files by their names, one of which is hostile."""
    arrays = small_set(6, 5)
    files = {name: idx_bytes(array) for name, array in arrays.items()}
    name = draw(st.sampled_from(list(files)))
    content = files[name]
    files[name] = draw(
        damaged(content)
        | damaged(gzip.compress(content, mtime=0))
        | st.sampled_from([0, 7, 255]).map(lambda label: idx_bytes(np.full(12, label, np.uint8)))
        | st.sampled_from([1, 2**20]).map(lambda n: content + bytes(n))
    )
    return files


@st.composite
def npz_files(draw):
    """An archive with hostile names of classes, values or shapes, or with damaged bytes.

    Those may be in the header or the values of an array, where the archive's checksums fit.
    """
    x, y, x_test, y_test = small_set(6, 5).values()
    fields = {"X": x, "y": y, "X_test": x_test, "y_test": y_test}
    names = np.array([text[:3000] for text in draw(st.permutations(TEXTS))[:3]])
    values = x.astype(draw(st.sampled_from([np.float32, np.float64])))
    values.flat[0] = draw(st.floats(width=32))
    shape = draw(st.sampled_from([(), (0,), (1, 1, 1, 1), (30, 2)]))
    hostile = draw(st.sampled_from(list(fields)))
    classes = {"y": names[y], "y_test": names[y_test]}
    change = draw(st.sampled_from([classes, {"X": values}, {hostile: np.zeros(shape)}, {}]))
    within, content = not change and draw(st.booleans()), io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in (fields | change).items():
            member = io.BytesIO()
            np.save(member, array)
            whole = member.getvalue()
            whole = draw(damaged(whole)) if within and name == hostile else whole
            archive.writestr(f"{name}.npy", whole)
    return content.getvalue() if change or within else draw(damaged(content.getvalue()))


@settings(max_examples=settings.default.max_examples // 4)
@given(command=st.sampled_from(COMMANDS), data=idx_folders() | npz_files())
def test_a_command_works_or_refuses(warm_folder, command, data):
    for name in ("data", "run"):
        shutil.rmtree(warm_folder / name, ignore_errors=True)
    (warm_folder / "data").mkdir()
    path = "data"
    if isinstance(data, bytes):
        data, path = {"data.npz": data}, "data/data.npz"
    for name, content in data.items():
        end = ".gz" if content[:2] == b"\x1f\x8b" else ""
        (warm_folder / "data" / (name + end)).write_bytes(content)
    assert forked.fault(forked.call(*command.split(), path, folder=warm_folder)) == ""
