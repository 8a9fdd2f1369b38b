"""Runs with one hostile value and checksums that fit, or with one damaged file."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mlpcore import backends
from mlpcore.data.dataset import Dataset, load
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, Run
from mlpcore.store.weights import read_network, write_network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.trainer import Trainer
from torture import Result, forked
from torture.judge import fault, repeat
from torture.values import TEXTS, changed, damaged


@functools.cache
def template() -> tempfile.TemporaryDirectory[str]:
    """A folder with small data in an .npz file, and a run on them that has stopped."""
    folder = tempfile.TemporaryDirectory()
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (120, 28, 28), dtype=np.uint8), np.arange(120) % 3
    path = Path(folder.name, "data.npz")
    np.savez(path, X=x, y=y, X_test=x[:30], y_test=y[:30])
    data: Dataset = load(path)
    config = TrainingConfig(hidden_layers=(4,), epochs=2)
    trainer = Trainer(config, data, backends.get("cpu", 1))
    with contextlib.closing(
        Run.create(Path(folder.name, "run"), config, data, "cpu", trainer.state)
    ) as run:
        trainer.observers = (run,)
        trainer.run()
    return folder


def change_settings(run: Path, rng: random.Random) -> None:
    content = json.loads((run / CONFIG).read_text())
    (run / CONFIG).write_text(json.dumps(changed(rng, content)))


def change_metrics(run: Path, rng: random.Random) -> None:
    lines = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    place = rng.randrange(len(lines))
    lines[place] = changed(rng, lines[place])
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    (run / METRICS).write_bytes(content)
    network, metadata = read_network(run / LAST)
    signed = metadata | {"metrics_sha256": hashlib.sha256(content).hexdigest()}
    write_network(run / LAST, network, signed)


def change_metadata(run: Path, rng: random.Random) -> None:
    """Text, or one value of JSON within the text."""
    path = run / rng.choice((BEST, LAST))
    network, metadata = read_network(path)
    name = rng.choice(list(metadata))
    text = rng.choice(TEXTS)
    with contextlib.suppress(ValueError):
        if rng.random() < 0.7:
            text = json.dumps(changed(rng, json.loads(metadata[name])))
    write_network(path, network, metadata | {name: text})


def change_weights(run: Path, rng: random.Random) -> None:
    path = run / rng.choice((BEST, LAST))
    network, metadata = read_network(path)
    values = rng.choice((network.weights, network.biases))[rng.randrange(2)]
    values.flat[rng.randrange(values.size)] = rng.choice((3e38, -3e38, 1e-45, 0.0))
    write_network(path, network, metadata)


def change_header(run: Path, rng: random.Random) -> None:
    """The header of a network: its tensors' names, types, shapes and offsets."""
    path = run / rng.choice((BEST, LAST))
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(changed(rng, json.loads(content[8 : 8 + length]))).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])


def damage(run: Path, rng: random.Random) -> None:
    """A file of bytes that are no longer signed, or none, or a folder, or a long one."""
    path = run / rng.choice(RUN_FILES)
    content = path.read_bytes()
    path.unlink()
    kind = rng.randrange(8)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.write_bytes(b"\n" * 2**27)
    elif kind > 2:
        path.write_bytes(damaged(rng, content))


CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    change_settings,
    change_metrics,
    change_metadata,
    change_metadata,
    change_weights,
    change_header,
    damage,
)

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


def attempt(rng: random.Random, folder: Path) -> str:
    """A command on a changed run."""
    run = folder / "run"
    shutil.copytree(Path(template().name, "run"), run)
    change = rng.choice(CHANGES)
    change(run, rng)
    words = rng.choice(COMMANDS).split()
    paths = {"data.npz": str(Path(template().name, "data.npz")), "picture.png": __file__}
    argv = [paths.get(word, word) for word in words]
    outcome = forked.call(*argv, folder=folder)
    problem = fault(outcome)
    return f"{change.__name__}, {' '.join(words)}: {problem}" if problem else ""


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    return repeat(attempt, seconds, seed)
