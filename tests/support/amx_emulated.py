"""The code for the matrix unit, on any CPU: compiled with `amx_emulation` for its intrinsics."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from mlpcore.network import Network

FOLDER = Path(__file__).with_name("amx_emulation")
KERNELS = FOLDER.parents[2] / "cpu_simd"
SOURCES = [KERNELS / "amx.c", KERNELS / "threads.c", KERNELS / "scalar.c", FOLDER / "predict.c"]
FLAGS = ["-shared", "-fPIC", "-std=gnu11", "-O2", "-Wno-psabi", "-D__AMX_BF16__", "-D__AVX512F__"]
ALIGN = 16  # MLP_ALIGN

Ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


def compiler() -> str | None:
    """The C compiler: $CC, or the first found."""
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


class EmulatedUnit:
    """`predict_by_amx` of a backend, compiled into a folder."""

    def __init__(self, folder: Path):
        library = folder / "amx.so"
        command = [compiler(), *FLAGS, f"-I{FOLDER}", f"-I{KERNELS}", *SOURCES, "-o", library]
        subprocess.run([*command, "-lpthread", "-lm"], check=True)
        self._predict = ctypes.CDLL(str(library)).predict

    def __call__(self, network: Network, images, threads, poll=None):
        sizes = np.array(network.layer_sizes, np.int32)
        layers = [np.c_[w, b] for w, b in zip(network.weights, network.biases)]
        layers = [np.pad(rows, ((0, 0), (0, -rows.shape[1] % ALIGN))) for rows in layers]
        outputs = np.full((len(images), sizes[-1]), np.nan, np.float32)
        pointers = (ctypes.c_void_p * len(layers))(*(rows.ctypes.data for rows in layers))
        ask = Ask(lambda *_: bool(poll())) if poll else Ask()
        images = np.ascontiguousarray(images)
        status = self._predict(
            len(layers),
            ctypes.c_void_p(sizes.ctypes.data),
            pointers,
            ctypes.c_void_p(images.ctypes.data),
            len(images),
            ctypes.c_void_p(outputs.ctypes.data),
            threads,
            ask,
        )
        assert status == 0
        return outputs
