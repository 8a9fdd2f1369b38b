"""The golden bits by the C core without Python, for other systems.

Zig compiles for these. QEMU runs what it made for 64-bit ARM, and Wine what it made for Windows.
"""

import functools
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlpcore import Network, philox
from test_golden_bits import EXPECTED, HIDDEN, PACKED_FROM, SAMPLES, digits, sha256

ROOT = Path(__file__).parents[2]

#: By system: its name for Zig, what runs its programs, and its baseline.
SYSTEMS = {
    "64-bit ARM": ("aarch64-linux-musl", ("qemu-aarch64", "qemu-aarch64-static"), "neon"),
    "Windows": ("x86_64-windows-gnu", ("wine", "wine64"), "sse2"),
}


@functools.cache
def program(system, folder):
    """The command that runs the program; a reason to skip if there is none."""
    target, runners, _ = SYSTEMS[system]
    run = [path for name in runners if (path := shutil.which(name))][:1]
    if not run or importlib.util.find_spec("ziglang") is None:
        return f"no Zig, or none of {runners}"
    made = folder / f"core-{target}.exe"
    flags = ["-std=gnu11", "-O1", "-ffp-contract=off", "-pthread", f"-I{ROOT / 'cpu_simd'}"]
    sources = [ROOT / "tests/support/core_program.c", *sorted(ROOT.glob("cpu_simd/*.c"))]
    compiler = sys.executable, "-m", "ziglang", "cc", "-target", target
    subprocess.run([*compiler, *flags, *sources, "-o", made, "-lm"], check=True)
    return [*run, made]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the network and the samples of the golden test are."""
    folder, data = tmp_path_factory.mktemp("core"), digits()
    network = Network((data.n_inputs, *HIDDEN, data.n_classes), seed=7)
    images = data.train_images.reshape(len(data.train_images), -1)
    order = philox.permutation(len(images), 7, 0)[:SAMPLES]
    header = np.array([network.n_layers, *network.layer_sizes, SAMPLES], np.int32)
    numbers = np.array([0.004, 0.002, 0.001, 1.2], np.float32)
    parts = (header, *network.weights, *network.biases, numbers, images[order])
    labels = np.asarray(data.train_labels, np.uint8)[order]
    (folder / "input").write_bytes(b"".join(part.tobytes() for part in (*parts, labels)))
    return folder


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("kernels", ["scalar", "baseline"])
def test_the_core_alone_gives_the_golden_bits(folder, system, kernels):
    command = program(system, folder)
    if isinstance(command, str):
        pytest.skip(command)
    name = SYSTEMS[system][2] if kernels == "baseline" else kernels
    hashes = set()
    for threads in ("1", "3"):
        output = folder / f"output-{threads}"
        arguments = [folder / "input", output, name, threads, str(PACKED_FROM)]
        subprocess.run([*command, *arguments], check=True, timeout=300)
        hashes.add(sha256(np.frombuffer(output.read_bytes(), np.uint8)))
        output.unlink()
    assert hashes == {EXPECTED["weights"][f"{name} packed"]}
