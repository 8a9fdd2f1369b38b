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
from mlpcore.backends.cuda.memory import put

pytestmark = needs_emulation

SNIPPETS = ROOT / "tests" / "support" / "cuda_snippets"
ONE = (1, 1, 1)


@pytest.fixture(scope="module")
def barriers():
    return EmulatedDriver(SNIPPETS / "barriers.cu")


@pytest.fixture(scope="module")
def blocks():
    return EmulatedDriver(SNIPPETS / "blocks.cu")


def run(driver, kernel, n, *arguments):
    """One block of n threads on n floats 0, 1, ...; the n floats that it writes."""
    source, out = put(driver, np.arange(n, dtype=np.float32)), put(driver, np.zeros(n, np.float32))
    arguments = source.address, out.address, *arguments
    driver.launch(Launch(kernel, ONE, (n, 1, 1), arguments))
    return np.asarray(out)


# ---- faults that show ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "right, wrong, n, arguments, expected",
    [
        ("reverse", "reverse_without_barrier", 256, (), np.arange(256)[::-1]),
        (
            "sum_of_rounds",
            "sum_of_rounds_without_second_barrier",
            256,
            (4,),
            np.roll(np.arange(256), -1) * 10,
        ),
        ("reverse_warp", "reverse_warp_in_step", 32, (), np.arange(32)[::-1]),
    ],
    ids=["barrier", "second barrier", "warp"],
)
def test_a_missing_barrier_gives_a_wrong_result(barriers, right, wrong, n, arguments, expected):
    expected = expected.astype(np.float32)
    assert np.array_equal(run(barriers, f"{right}_kernel", n, *arguments), expected)
    assert not np.array_equal(run(barriers, f"{wrong}_kernel", n, *arguments), expected)


@pytest.mark.parametrize("kernel", ["divergent_barrier_kernel", "divergent_shuffle_kernel"])
def test_a_barrier_that_some_never_reach_is_a_deadlock(barriers, kernel):
    out = put(barriers, np.zeros(32, np.float32))
    with pytest.raises(EmulationError, match=f"{kernel}: deadlock in block .*16 have ended"):
        barriers.launch(Launch(kernel, ONE, (32, 1, 1), (out.address,)))
    assert np.array_equal(run(barriers, "reverse_kernel", 4), [3, 2, 1, 0])  # and it goes on


def test_polling_that_nobody_answers_is_a_deadlock(blocks):
    flag = put(blocks, np.zeros(1, np.int32))
    with pytest.raises(EmulationError, match=r"nobody answers; of 32 threads .* 32 poll"):
        blocks.launch(Launch("wait_for_nobody_kernel", (2, 1, 1), (32, 1, 1), (flag.address,)))


def test_shared_memory_starts_as_nan(barriers):
    out = put(barriers, np.zeros(64, np.float32))
    run(barriers, "reverse_kernel", 256)  # leaves numbers behind
    barriers.launch(Launch("uninitialised_kernel", ONE, (64, 1, 1), (out.address,)))
    assert np.isnan(np.asarray(out)).all()


BOUNDS = """
import sys, numpy as np
from emulated import ROOT, EmulatedDriver
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray
driver = EmulatedDriver(ROOT / "tests/support/cuda_snippets/bounds.cu")
kernel, n = sys.argv[1], 33 if sys.argv[1] == "shared_kernel" else 20
arrays = [DeviceArray(driver, (n,), np.float32), DeviceArray(driver, (64,), np.float32)]
arguments = {
    "read_before_kernel": (arrays[0].address, n, arrays[1].address),
    "shared_kernel": (arrays[1].address, n),
}.get(kernel, (arrays[0].address, n))
driver.launch(Launch(kernel, (1, 1, 1), (32, 1, 1), arguments))
print("nothing was found")
"""


@pytest.mark.parametrize(
    "kernel, finding",
    [
        ("read_before_kernel", "heap-buffer-overflow.*READ of size 4"),
        ("write_after_kernel", "heap-buffer-overflow.*WRITE of size 4"),
        ("shared_kernel", "global-buffer-overflow.*WRITE of size 4"),
        ("in_bounds_kernel", None),
    ],
    ids=["read", "write", "shared", "none"],
)
def test_accesses_out_of_bounds_are_caught(kernel, finding):
    if kernel == "shared_kernel" and not checks_shared_memory():
        pytest.skip("this compiler's AddressSanitizer leaves variables in named sections alone")
    result = sanitized.run("-c", BOUNDS, kernel)
    if finding is None:
        assert (result.returncode, result.stdout) == (0, "nothing was found\n"), result.stderr
        return
    assert result.returncode != 0
    assert re.search(finding, result.stderr, re.DOTALL), result.stderr
    assert f"in {kernel}" in result.stderr


# ---- what must work ------------------------------------------------------------------------


def test_the_order_of_threads_and_blocks_is_random_and_repeatable(blocks):
    def tickets(seed):
        counter, out = put(blocks, np.zeros(1, np.int32)), put(blocks, np.zeros(200, np.int32))
        blocks.seed(seed)
        arguments = counter.address, out.address
        blocks.launch(Launch("tickets_kernel", (4, 1, 1), (50, 1, 1), arguments))
        return np.asarray(out)

    assert np.array_equal(np.sort(tickets(1)), np.arange(200))
    assert np.array_equal(tickets(1), tickets(1))
    assert not np.array_equal(tickets(1), tickets(2))


def test_the_launch_table_agrees_with_the_kernels():
    letters = {name: letters for name, (_, letters) in EmulatedDriver().kernels.items()}
    assert letters == table.KERNELS
    files = ("activation.cuh", "layout.cuh", "displacement.cu")
    text = "".join((SOURCES / name).read_text() for name in files)
    constants = dict(re.findall(r"(?:constexpr int|,) (\w+) = (\d+)", text))
    repeated = {name: str(getattr(table, name)) for name in constants if hasattr(table, name)}
    assert len(repeated) > 12
    assert repeated == {name: constants[name] for name in repeated}
