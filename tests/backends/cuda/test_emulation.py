"""What the emulation of CUDA on a CPU does, and which faults of kernels it shows."""

import re

import numpy as np
import pytest

import sanitized
from emulated import (
    ROOT,
    SOURCES,
    EmulatedDriver,
    EmulationError,
    checks_shared_memory,
    needs_emulation,
)
from mlpcore.backends.cuda import launch as table
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray, put

pytestmark = needs_emulation

SNIPPETS = ROOT / "tests" / "support" / "snippets.cu"


@pytest.fixture(scope="module")
def driver():
    return EmulatedDriver(SNIPPETS)


def launch(driver, kernel, threads, *arrays, blocks=1):
    arguments = tuple(array.address if hasattr(array, "address") else array for array in arrays)
    driver.launch(Launch(f"{kernel}_kernel", (blocks, 1, 1), (threads, 1, 1), arguments))


def reversed_by(driver, kernel, n=256):
    """What becomes of the floats 0, 1, ... of a block of n threads."""
    source, out = put(driver, np.arange(n, dtype=np.float32)), put(driver, np.zeros(n, np.float32))
    launch(driver, kernel, n, source, out)
    return np.asarray(out)


# ---- faults that show ----------------------------------------------------------------------


def test_a_missing_barrier_gives_a_wrong_result(driver):
    expected = np.arange(256, dtype=np.float32)[::-1]
    assert np.array_equal(reversed_by(driver, "reverse"), expected)
    assert not np.array_equal(reversed_by(driver, "reverse_without_barrier"), expected)


@pytest.mark.parametrize("kernel", ["divergent_barrier", "divergent_shuffle"])
def test_a_barrier_that_some_never_reach_is_a_deadlock(driver, kernel):
    with pytest.raises(EmulationError, match=f"{kernel}_kernel: deadlock in block .*16 have ended"):
        launch(driver, kernel, 32, put(driver, np.zeros(32, np.float32)))
    assert np.array_equal(reversed_by(driver, "reverse", 4), [3, 2, 1, 0])  # and it goes on


def test_polling_that_nobody_answers_is_a_deadlock(driver):
    with pytest.raises(EmulationError, match=r"nobody answers; of 32 threads .* 32 poll"):
        launch(driver, "wait_for_nobody", 32, put(driver, np.zeros(1, np.int32)), blocks=2)


def test_shared_memory_starts_as_nan(driver):
    out = put(driver, np.zeros(64, np.float32))
    reversed_by(driver, "reverse")  # leaves numbers behind
    launch(driver, "uninitialised", 64, out)
    assert np.isnan(np.asarray(out)).all()


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
def test_accesses_out_of_bounds_are_caught(kernel, finding, monkeypatch):
    """What is within bounds is not: see the tests of the kernels."""
    if kernel == "shared" and not checks_shared_memory():
        pytest.skip("this compiler's AddressSanitizer leaves variables in named sections alone")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "backends" / "cuda"))
    result = sanitized.run("-c", BOUNDS, kernel)
    assert result.returncode != 0
    assert re.search(finding, result.stderr, re.DOTALL), result.stderr
    assert f"in {kernel}_kernel" in result.stderr


# ---- what must work ------------------------------------------------------------------------


def test_the_order_of_threads_and_blocks_is_random_and_repeatable(driver):
    def tickets(seed):
        counter, out = put(driver, np.zeros(1, np.int32)), put(driver, np.zeros(200, np.int32))
        driver.seed(seed)
        launch(driver, "tickets", 50, counter, out, blocks=4)
        return np.asarray(out)

    assert np.array_equal(np.sort(tickets(1)), np.arange(200))
    assert np.array_equal(tickets(1), tickets(1))
    assert not np.array_equal(tickets(1), tickets(2))


@pytest.mark.parametrize("bit", [0, 1])
def test_words_keep_values_except_for_their_last_bit(driver, bit):
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


def test_the_launch_table_agrees_with_the_kernels():
    letters = {name: letters for name, (_, letters) in EmulatedDriver().kernels.items()}
    assert letters == table.KERNELS
    files = ("activation.cuh", "layout.cuh", "displacement.cu")
    text = "".join((SOURCES / name).read_text() for name in files)
    constants = dict(re.findall(r"(?:constexpr int|,) (\w+) = (\d+)", text))
    repeated = {name: str(getattr(table, name)) for name in constants if hasattr(table, name)}
    assert len(repeated) > 12
    assert repeated == {name: constants[name] for name in repeated}
