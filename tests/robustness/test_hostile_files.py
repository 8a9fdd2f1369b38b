"""Commands on hostile runs, data and pictures, most with checksums that fit.

`test_formats.py` has bombs.
"""

import contextlib
import hashlib
import io
import json
import math
import shutil
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

import forked
from idx_files import idx_bytes, small_set, write_set, zipped
from mlpcore.data.dataset import load
from mlpcore.data.idx import FILES
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES
from mlpcore.store.weights import read_network, write_network
from pictures import encoded
from small_runs import finish_run, make_config, make_pixels

TEXTS = (
    *("", "0", "-1", "nan", "1e999", "1" * 5000, "x" * 100_000, "\x1b[31m\x1b]0;title\x07"),
    *("one\ntwo\r\nthree", "\u202eback\u2028wards", "²", "1,2,3", "{}", "[" * 20_000),
    *("$\\frac{1}$", "../../../etc"),
)

VALUES = (
    *(None, True, -1, 0, 1, 2**31, 2**40, 2**64, 10**400, 0.5, -0.0, 1e308, math.nan, math.inf),
    *([], {}, [[]], ["a"] * 1000, [1] * 1000, *TEXTS),
)


@st.composite
def damaged(draw, content):
    """Bytes of which a part is cut off, changed, doubled or left out, up to three times."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(content)))
        n = min(draw(st.sampled_from([1, 2, 4, 30, 1000])), len(content) - begin)
        old, rest = content[begin : begin + n], content[begin + n :]
        parts = [b"", old * 2, old * 50, b"\0" * n, b"\x7f" * n, b"\xff" * n]
        new = draw(st.binary(min_size=n, max_size=n) | st.sampled_from(parts))
        content = content[:begin] + new + draw(st.sampled_from([rest, b""]))
    return content


def changed(value):
    """JSON with one other value somewhere, or with a field too few or too many."""
    anything = st.sampled_from(VALUES)
    if isinstance(value, dict) and value:
        names = st.sampled_from(sorted(value))
        within = names.flatmap(lambda n: changed(value[n]).map(lambda new: value | {n: new}))
        fewer = names.map(lambda name: {each: value[each] for each in value if each != name})
        more = st.tuples(st.sampled_from(TEXTS), anything).map(lambda field: value | dict([field]))
        return within | within | within | fewer | more | anything
    if isinstance(value, list) and value:
        places = st.integers(0, len(value) - 1)
        return anything | places.flatmap(
            lambda i: changed(value[i]).map(lambda new: [*value[:i], new, *value[i + 1 :]])
        )
    return anything


NETWORKS = st.sampled_from([BEST, LAST])


def change_settings(draw, run):
    content = json.loads((run / CONFIG).read_text())
    (run / CONFIG).write_text(json.dumps(draw(changed(content))))


def change_metrics(draw, run):
    lines = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    i = draw(st.integers(0, len(lines) - 1))
    lines[i] = draw(changed(lines[i]))
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    (run / METRICS).write_bytes(content)
    network, metadata = read_network(run / LAST)
    sha256 = {"metrics_sha256": hashlib.sha256(content).hexdigest()}
    signed = json.dumps(json.loads(metadata["checkpoint"]) | sha256)
    write_network(run / LAST, network, metadata | {"checkpoint": signed})


def change_network(draw, run):
    """A weight, or metadata: text, or one value of JSON within the text."""
    path = run / draw(NETWORKS)
    network, metadata = read_network(path)
    name = draw(st.sampled_from(["weight", *sorted(metadata)]))
    if name == "weight":
        values = draw(st.sampled_from([*network.weights, *network.biases]))
        values.flat[draw(st.integers(0, values.size - 1))] = draw(st.floats(width=32))
    else:
        metadata[name], old = draw(st.sampled_from(TEXTS)), metadata[name]
        with contextlib.suppress(ValueError):
            other = changed(json.loads(old)).map(json.dumps)
            metadata[name] = draw(st.just(metadata[name]) | other)
    write_network(path, network, metadata)


def damage_file(draw, run):
    """Other bytes, a long file, a folder, or nothing."""
    path = run / draw(st.sampled_from(RUN_FILES))
    content = draw(damaged(path.read_bytes()) | st.sampled_from([b"\n" * 2**27, "folder", None]))
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)


def spoil_run(draw, folder):
    changes = change_settings, change_metrics, change_network, damage_file
    draw(st.sampled_from(changes))(draw, shutil.copytree(folder / "sound", folder / "run"))


def spoil_data(draw, folder):
    """Four IDX files, one of which is hostile."""
    path = write_set(folder / "hostile", small_set(6, 5)) / draw(st.sampled_from(FILES))
    content = path.read_bytes()
    path.unlink()
    hostile = draw(
        damaged(content)
        | damaged(zipped(content))
        | st.sampled_from([0, 7, 255]).map(lambda label: idx_bytes(np.full(12, label, np.uint8)))
        | st.sampled_from([1, 2**20]).map(lambda n: content + bytes(n))
    )
    end = ".gz" if hostile[:2] == b"\x1f\x8b" else ""
    path.with_name(path.name + end).write_bytes(hostile)


def spoil_archive(draw, folder):
    """An archive with hostile names of classes, of which an array or all has damaged bytes.

    Those of an array are in its header or its values, and the archive's checksums fit.
    """
    names = np.array([text[:3000] for text in draw(st.permutations(TEXTS))[:3]])
    fields = dict(zip(("X", "y", "X_test", "y_test"), small_set(6, 5).values()))
    path, hostile = folder / "hostile.npz", draw(st.sampled_from([*fields, "archive", "names"]))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in fields.items():
            member = io.BytesIO()
            np.save(member, names[array] if array.ndim == 1 else array)
            whole = member.getvalue()
            archive.writestr(f"{name}.npy", draw(damaged(whole)) if name == hostile else whole)
    if hostile == "archive":
        path.write_bytes(draw(damaged(path.read_bytes())))


#: Kinds of files, modes of their pixels, and options.
KINDS = [
    *(("PNG", "RGBA", {}), ("PNG", "I;16", {}), ("BMP", "RGB", {}), ("PPM", "L", {})),
    *(("GIF", "P", {}), ("WEBP", "RGB", {}), ("JPEG", "CMYK", {}), ("TIFF", "F", {})),
    *(("JPEG", "L", {"progressive": True}), ("TIFF", "1", {"compression": "group4"})),
]


def spoil_picture(draw, folder):
    kind, mode, options = draw(st.sampled_from(KINDS))
    picture = Image.new("L", (60, 80), 230)
    ImageDraw.Draw(picture).line([(30, 10), (28, 70)], fill=20, width=6)
    (folder / "picture").write_bytes(draw(damaged(encoded(picture.convert(mode), kind, **options))))


ON_DATA = (
    "train --arch 3 --epochs 1 --threads 1 --out trained --data hostile",
    "preview --rows 2 --columns 2 --threads 1 --data hostile",
)

COMMANDS = {
    spoil_run: (
        "train --resume run --threads 1",
        "train --resume run --threads 1 --epochs 3",
        "evaluate run --threads 1 --figures figures",
        "evaluate run/last.safetensors --data data.npz --threads 1 --json out.json",
        "info run run/best.safetensors",
        "predict run picture.png",
        "predict run/best.safetensors picture.png --json",
        "export run --onnx net.onnx --safetensors net.safetensors",
        "export run/best.safetensors --onnx net.onnx",
    ),
    spoil_data: ON_DATA,
    spoil_archive: [f"{command}.npz" for command in ON_DATA],
    spoil_picture: ("predict picture", "read picture", "read picture --columns 60 --rows 9"),
}


@pytest.fixture(scope="module")
def work(warm_folder):
    """A folder with small data and the files of a run on them that has ended."""
    x, y = make_pixels(120, 0)
    np.savez(warm_folder / "data.npz", X=x, y=y, X_test=x[:30], y_test=y[:30])
    (warm_folder / "picture.png").write_text("no picture")
    data = load(warm_folder / "data.npz")
    finish_run(warm_folder / "sound", make_config(hidden_layers=(4,), epochs=2), data)
    return warm_folder


@pytest.mark.parametrize("spoil", COMMANDS)
@settings(max_examples=settings.default.max_examples // 6)
@given(data=st.data())
def test_a_command_works_or_refuses(work, spoil, data):
    for name in ("run", "figures", "hostile", "trained"):
        shutil.rmtree(work / name, ignore_errors=True)
    spoil(data.draw, work)
    command = data.draw(st.sampled_from(COMMANDS[spoil]))
    assert forked.fault(forked.call(*command.split(), folder=work)) == ""


def test_a_picture_that_keeps_its_decoder_busy(warm_folder, monkeypatch):
    """A progressive JPEG repeats its last scan, which took half a minute and more.

    The clock is the processor's.
    """
    monkeypatch.setattr("mlpcore.data.image_files.MAX_SECONDS", 0.3)
    picture = encoded(Image.new("L", (3000, 3000), 255), "JPEG", progressive=True)
    scan = picture[picture.rfind(b"\xff\xda") : -2]
    (warm_folder / "picture").write_bytes(picture[:-2] + scan * 7000 + b"\xff\xd9")
    outcome = forked.call("predict", "picture", folder=warm_folder)
    assert outcome.status == 2
    assert "keeps its decoder busy for more than 0.3 seconds" in outcome.err
