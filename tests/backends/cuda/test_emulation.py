"""What the emulation of CUDA on a CPU shows: accesses out of bounds, and what kernels repeat."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from emulated import (
    LIMITS,
    ROOT,
    SANITIZE_VARIABLE,
    EmulatedDriver,
    checks_shared_memory,
    compiler,
    needs_emulation,
)
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray, put
from mlpcore.backends.cuda.plan import make_plan
from mlpcore.backends.cuda.sources import SOURCES, kernels

pytestmark = needs_emulation

SNIPPETS = ROOT / "tests" / "support" / "snippets.cu"


def launch(driver, kernel, threads, *arrays):
    arguments = tuple(array.address if hasattr(array, "address") else array for array in arrays)
    driver.launch(Launch(f"{kernel}_kernel", (1, 1, 1), (threads, 1, 1), arguments))


@pytest.fixture
def sanitized():
    """Runs Python with arguments in a process whose emulation is built with AddressSanitizer."""
    command = [compiler(), "-print-file-name=libasan.so"]
    library = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(library):  # it must be loaded before Python
        pytest.skip(f"{compiler()} has no shared AddressSanitizer")
    folders = ROOT / "tests" / "support", ROOT / "tests" / "backends" / "cuda"
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"LD_PRELOAD": library, "PYTHONPATH": path}
    environment |= {"ASAN_OPTIONS": "detect_leaks=0", SANITIZE_VARIABLE: "address"}

    def run(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    return run


BOUNDS = """
import sys, numpy as np
from test_emulation import SNIPPETS, DeviceArray, EmulatedDriver, launch
driver = EmulatedDriver(SNIPPETS)
launch(driver, sys.argv[1], 32, DeviceArray(driver, (20,), np.float32), 20)
"""


@pytest.mark.parametrize(
    "kernel, finding",
    [
        ("read_before", "heap-buffer-overflow.*READ of size 4"),
        ("shared", "global-buffer-overflow.*WRITE of size 4"),
    ],
    ids=["global", "shared"],
)
def test_accesses_out_of_bounds_are_caught(sanitized, kernel, finding):
    if kernel == "shared" and not checks_shared_memory():
        pytest.skip("this compiler's AddressSanitizer leaves variables in named sections alone")
    result = sanitized("-c", BOUNDS, kernel)
    assert result.returncode != 0
    assert re.search(finding, result.stderr, re.DOTALL), result.stderr
    assert f"in {kernel}_kernel" in result.stderr


#: Tests of the sizes at which blocks end, and of resident training with all kinds of slots and in
#: two launches.
WITHIN_BOUNDS = """cuda-emulated and (edges or predict or displacement or permutation)
    or nothing_to_do and emulated or equal_sort and emulated or grid_by_grid or any_length"""


def test_kernels_stay_within_bounds(sanitized):
    files = "tests/backends/test_backends.py", "tests/backends/cuda"
    chosen = " ".join(WITHIN_BOUNDS.split())
    result = sanitized("-m", "pytest", "-n0", "-p", "no:cacheprovider", *files, "-k", chosen)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("bit", [0, 1])
def test_words_keep_values_except_for_their_last_bit(bit):
    driver = EmulatedDriver(SNIPPETS)
    special = [np.inf, -np.inf, 0.0, -0.0, np.finfo(np.float32).max]
    nans = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32).view(np.float32)
    consecutive = np.arange(0x3F800000, 0x3F800000 + 504, dtype=np.uint32).view(np.float32)
    values = np.concatenate([np.float32(special), nans, consecutive])
    out, words = (DeviceArray(driver, values.shape, dtype) for dtype in ("f4", "u4"))
    launch(driver, "store", values.size, put(driver, values), words, bit)
    launch(driver, "load", values.size, out, words)
    got = np.asarray(out)
    np.testing.assert_array_equal(got[:4], values[:4])
    assert np.isfinite(got[4])
    assert np.isnan(got[5:8]).all()
    errors = got[8:].view(np.uint32).astype(int) - consecutive.view(np.uint32)
    assert set(errors) == {-1, 0, 1}
    assert errors.sum() == 0  # up as often as down
    assert np.all(np.asarray(words) == bit)


@pytest.mark.parametrize("source", ["kernels.cu", "resident.cu"])
def test_the_parameters_are_those_that_a_compiler_finds(source):
    files = {"resident_plan.h": make_plan((20, 12, 9, 3), LIMITS).header()}
    compiled = EmulatedDriver(SOURCES / source, files=files).kernels
    found = {name: each.format for name, each in kernels(source).items()}
    assert found == {name: letters for name, (_, letters) in compiled.items()}
