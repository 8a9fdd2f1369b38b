"""Commands on runs with one hostile value and checksums that fit, or with one damaged file."""

import contextlib
import hashlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forked
from hostile import TEXTS, changed, damaged
from mlpcore.data.dataset import load
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES
from mlpcore.store.weights import read_network, write_network
from small_runs import finish_run, make_config, make_pixels

COMMANDS = (
    "train --resume run --threads 1",
    "train --resume run --threads 1 --epochs 3",
    "evaluate run --threads 1 --figures figures",
    "evaluate run/last.safetensors --data data.npz --threads 1 --json out.json",
    "predict run picture.png",
    "predict run/best.safetensors picture.png --json",
    "export run --onnx net.onnx --safetensors net.safetensors",
    "export run/best.safetensors --onnx net.onnx",
)

NETWORKS = st.sampled_from([BEST, LAST])


@pytest.fixture(scope="module")
def work(warm_folder):
    """A folder with small data and the files of a run on them that has ended."""
    x, y = make_pixels(120, 0)
    np.savez(warm_folder / "data.npz", X=x, y=y, X_test=x[:30], y_test=y[:30])
    (warm_folder / "picture.png").write_text("no picture")
    data = load(warm_folder / "data.npz")
    finish_run(warm_folder / "sound", make_config(hidden_layers=(4,), epochs=2), data)
    return warm_folder


def settings_changed(draw, run):
    content = json.loads((run / CONFIG).read_text())
    (run / CONFIG).write_text(json.dumps(draw(changed(content))))


def metrics_changed(draw, run):
    lines = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    i = draw(st.integers(0, len(lines) - 1))
    lines[i] = draw(changed(lines[i]))
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    (run / METRICS).write_bytes(content)
    network, metadata = read_network(run / LAST)
    sha256 = {"metrics_sha256": hashlib.sha256(content).hexdigest()}
    signed = json.dumps(json.loads(metadata["checkpoint"]) | sha256)
    write_network(run / LAST, network, metadata | {"checkpoint": signed})


def metadata_changed(draw, run):
    """Text, or one value of JSON within the text."""
    path = run / draw(NETWORKS)
    network, metadata = read_network(path)
    name = draw(st.sampled_from(sorted(metadata)))
    text = draw(st.sampled_from(TEXTS))
    with contextlib.suppress(ValueError):
        text = draw(st.just(text) | changed(json.loads(metadata[name])).map(json.dumps))
    write_network(path, network, metadata | {name: text})


def weights_changed(draw, run):
    path = run / draw(NETWORKS)
    network, metadata = read_network(path)
    values = draw(st.sampled_from([*network.weights, *network.biases]))
    values.flat[draw(st.integers(0, values.size - 1))] = draw(st.floats(width=32))
    write_network(path, network, metadata)


def header_changed(draw, run):
    """The names, types, shapes and offsets of a network's tensors."""
    path = run / draw(NETWORKS)
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(draw(changed(json.loads(content[8:end])))).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[end:])


def file_damaged(draw, run):
    """Other bytes, a long file, a folder, or nothing."""
    path = run / draw(st.sampled_from(RUN_FILES))
    content = draw(damaged(path.read_bytes()) | st.sampled_from([b"\n" * 2**27, "folder", None]))
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)


CHANGES = (
    *(settings_changed, metrics_changed, metadata_changed, weights_changed),
    *(header_changed, file_damaged),
)


@settings(max_examples=settings.default.max_examples // 4)
@given(change=st.sampled_from(CHANGES), command=st.sampled_from(COMMANDS), data=st.data())
def test_a_command_works_or_refuses(work, change, command, data):
    for name in ("run", "figures"):
        shutil.rmtree(work / name, ignore_errors=True)
    shutil.copytree(work / "sound", work / "run")
    change(data.draw, work / "run")
    assert forked.fault(forked.call(*command.split(), folder=work)) == ""
