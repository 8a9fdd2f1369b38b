"""The emulation of CUDA on a CPU shows accesses out of bounds."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from emulated import ROOT, SANITIZE_VARIABLE, EmulatedDriver, compiler, needs_emulation
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.launch import Launch

pytestmark = needs_emulation


def sanitized(*arguments):
    """Runs Python in a process whose emulation is built with AddressSanitizer."""
    command = [compiler(), "-print-file-name=libasan.so"]
    library = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True).stdout
    if not os.path.isabs(library) or "clang" in version:  # which leaves shared memory alone
        pytest.skip(f"{compiler()} has no AddressSanitizer to load before Python")
    path = os.pathsep.join([str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")])
    environment = {"LD_PRELOAD": library, "PYTHONPATH": path, SANITIZE_VARIABLE: "yes"}
    environment = os.environ | environment | {"ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


BOUNDS = """
from emulated import ROOT, EmulatedDriver
from mlpcore.backends.cuda.launch import Launch
driver = EmulatedDriver(ROOT / "tests" / "support" / "snippets.cu")
memory = driver.allocate(128)
driver.launch(Launch("shared_kernel", (1, 1, 1), (32, 1, 1), (memory.address,)))
"""


def test_accesses_out_of_bounds_are_caught():
    """In shared memory, which is a section of its own; malloc gives a GPU's other memory."""
    result = sanitized("-c", BOUNDS)
    assert result.returncode != 0
    finding = "global-buffer-overflow.*WRITE of size 4.*in shared_kernel"
    assert re.search(finding, result.stderr, re.DOTALL), result.stderr


def test_kernels_stay_within_bounds():
    """All at the edges of their blocks, and resident training with all kinds of slots."""
    files = "tests/gpu/test_every_kernel.py", "tests/backends/cuda/test_resident.py"
    chosen = "every_kernel and emulated or any_length"
    result = sanitized("-m", "pytest", "-n0", "-p", "no:cacheprovider", *files, "-k", chosen)
    assert result.returncode == 0, result.stdout + result.stderr


def test_words_go_up_as_often_as_down_and_a_nan_stays_one():
    driver = EmulatedDriver(ROOT / "tests" / "support" / "snippets.cu")
    values = np.arange(0x3F800000, 0x3F800000 + 504, dtype=np.uint32)
    values[-4:] = 0x7F800001, 0x7FFFFFFF, 0x7F800000, 0xFF800000  # NaN, NaN and infinities
    put = CudaBackend(driver).put
    given, words = put(values.view(np.float32)), put(np.zeros_like(values))
    arguments = given.address, words.address
    driver.launch(Launch("store_kernel", (1, 1, 1), (504, 1, 1), arguments))
    errors = np.asarray(words).astype(int) - values
    assert np.isnan(np.asarray(words).view(np.float32)[-4:-2]).all()
    assert set(errors) == {-1, 0, 1}
    assert errors.sum() == 0
