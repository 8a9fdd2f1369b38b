"""Tests of the tests: what the emulation of CUDA on a CPU does, and which faults it shows."""

import re
from pathlib import Path

import numpy as np
import pytest
from mlpcore.backends.cuda.emulated import EmulatedDriver, EmulationError

import sanitized
from mlpcore.backends.cuda import emulated as cuda_emulated
from mlpcore.backends.cuda import launch as cuda_launch
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray

pytestmark = pytest.mark.skipif(
    cuda_emulated.unavailable_reason() is not None, reason=str(cuda_emulated.unavailable_reason())
)

SNIPPETS = Path(__file__).parents[2] / "support" / "cuda_snippets"
CUDA = Path(__file__).resolve().parents[3] / "cuda"
ONE = (1, 1, 1)


@pytest.fixture(scope="module")
def barriers():
    return EmulatedDriver(SNIPPETS / "barriers.cu")


@pytest.fixture(scope="module")
def blocks():
    return EmulatedDriver(SNIPPETS / "blocks.cu")


def on_device(driver, array):
    result = DeviceArray(driver, array.shape, array.dtype)
    result.set(array)
    return result


def run(driver, kernel, n, *arguments, shared_bytes=0):
    """One block of n threads on n floats 0, 1, ...; the n floats that it writes."""
    source, out = on_device(driver, np.arange(n, dtype=np.float32)), np.full(n, -1, np.float32)
    out = on_device(driver, out)
    launch = Launch(kernel, ONE, (n, 1, 1), (source.address, out.address, *arguments))
    driver.launch(launch, shared_bytes)
    return np.asarray(out)


# ---- faults that show ----------------------------------------------------------------------


def test_a_missing_barrier_gives_a_wrong_result(barriers):
    expected = np.arange(256, dtype=np.float32)[::-1]
    assert np.array_equal(run(barriers, "reverse_kernel", 256), expected)
    assert not np.array_equal(run(barriers, "reverse_without_barrier_kernel", 256), expected)


def test_a_missing_second_barrier_gives_a_wrong_result(barriers):
    expected = np.roll(np.arange(256, dtype=np.float32), -1) * 10
    assert np.array_equal(run(barriers, "sum_of_rounds_kernel", 256, 4), expected)
    wrong = run(barriers, "sum_of_rounds_without_second_barrier_kernel", 256, 4)
    assert not np.array_equal(wrong, expected)


def test_a_warp_does_not_run_in_step(barriers):
    expected = np.arange(32, dtype=np.float32)[::-1]
    assert np.array_equal(run(barriers, "reverse_warp_kernel", 32), expected)
    assert not np.array_equal(run(barriers, "reverse_warp_in_step_kernel", 32), expected)


@pytest.mark.parametrize("kernel", ["divergent_barrier_kernel", "divergent_shuffle_kernel"])
def test_a_barrier_that_some_never_reach_is_a_deadlock(barriers, kernel):
    out = on_device(barriers, np.zeros(32, np.float32))
    with pytest.raises(EmulationError, match=f"{kernel}: deadlock in block .*16 have ended"):
        barriers.launch(Launch(kernel, ONE, (32, 1, 1), (out.address,)))
    assert np.array_equal(run(barriers, "reverse_kernel", 4), [3, 2, 1, 0])  # and it goes on


def test_polling_that_nobody_answers_is_a_deadlock(blocks):
    flag = on_device(blocks, np.zeros(1, np.int32))
    with pytest.raises(EmulationError, match=r"nobody answers; of 32 threads .* 32 poll"):
        blocks.launch(Launch("wait_for_nobody_kernel", (2, 1, 1), (32, 1, 1), (flag.address,)))


def test_shared_memory_starts_as_nan(barriers):
    out = on_device(barriers, np.zeros(64, np.float32))
    run(barriers, "reverse_kernel", 256)  # leaves numbers behind
    barriers.launch(Launch("uninitialised_kernel", ONE, (64, 1, 1), (out.address,)))
    assert np.isnan(np.asarray(out)).all()


@pytest.mark.parametrize(
    "grid, block, message",
    [
        ((1, 65536, 1), (1, 1, 1), "grid too large"),
        ((1, 1, 65536), (1, 1, 1), "grid too large"),
        ((0, 1, 1), (1, 1, 1), "without threads"),
        ((1, 1, 1), (1025, 1, 1), "block too large"),
        ((1, 1, 1), (32, 32, 2), "block too large"),
    ],
)
def test_launches_beyond_a_devices_limits_are_refused(barriers, grid, block, message):
    with pytest.raises(EmulationError, match=message):
        barriers.launch(Launch("uninitialised_kernel", grid, block, (0,)))


BOUNDS = """
import sys, numpy as np
from pathlib import Path
from mlpcore.backends.cuda.emulated import EmulatedDriver
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray
driver = EmulatedDriver(Path("tests/support/cuda_snippets/bounds.cu"))
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
    ],
    ids=["read", "write", "shared"],
)
def test_accesses_out_of_bounds_are_caught(kernel, finding):
    if kernel == "shared_kernel" and not cuda_emulated.checks_shared_memory():
        pytest.skip("this compiler's AddressSanitizer leaves variables in named sections alone")
    result = sanitized.run("-c", BOUNDS, kernel)
    assert result.returncode != 0
    assert re.search(finding, result.stderr, re.DOTALL), result.stderr
    assert f"in {kernel}" in result.stderr


def test_accesses_in_bounds_are_not_reported():
    result = sanitized.run("-c", BOUNDS, "in_bounds_kernel")
    assert (result.returncode, result.stdout) == (0, "nothing was found\n"), result.stderr


# ---- what must work ------------------------------------------------------------------------


def test_dynamic_shared_memory(barriers):
    result = run(barriers, "dynamic_shared_kernel", 64, shared_bytes=256)
    assert np.array_equal(result, np.arange(64)[::-1])


@pytest.mark.parametrize("n", [32, 64, 71])
def test_shuffles(blocks, n):
    values = np.arange(n, dtype=np.float32) ** 2
    source, out = on_device(blocks, values), on_device(blocks, np.zeros((n, 3), np.float32))
    arguments = source.address, out.address
    blocks.launch(Launch("warp_sum_kernel", ONE, (n, 1, 1), arguments))
    for begin in range(0, n // 32 * 32, 32):  # of a warp that is not full, sums are undefined
        warp, got = values[begin : begin + 32], np.asarray(out)[begin : begin + 32]
        assert np.all(got[:, 0] == warp.sum())
        assert np.all(got[:, 1] == warp[0])
        assert np.array_equal(got[:, 2], [warp[0], *warp[:-1]])


def test_blocks_that_wait_for_each_other_run_side_by_side(blocks):
    """And each keeps its own shared memory meanwhile."""
    turn, sums = on_device(blocks, np.zeros(1, np.int32)), on_device(blocks, np.zeros(4, np.int32))
    arguments = turn.address, 1000, sums.address
    blocks.launch(Launch("take_turns_kernel", (4, 1, 1), (64, 1, 1), arguments))
    assert np.array_equal(np.asarray(sums), [1000, 2000, 3000, 4000])


def test_the_order_of_threads_and_blocks_is_random_and_repeatable(blocks):
    def tickets(seed):
        counter = on_device(blocks, np.zeros(1, np.int32))
        out = on_device(blocks, np.zeros(200, np.int32))
        blocks.seed(seed)
        arguments = counter.address, out.address
        blocks.launch(Launch("tickets_kernel", (4, 1, 1), (50, 1, 1), arguments))
        return np.asarray(out)

    assert np.array_equal(np.sort(tickets(1)), np.arange(200))
    assert np.array_equal(tickets(1), tickets(1))
    assert not np.array_equal(tickets(1), tickets(2))


def test_a_compiler_error_is_told(tmp_path):
    (tmp_path / "wrong.cu").write_text('extern "C" __global__ void wrong_kernel() { nonsense; }\n')
    with pytest.raises(cuda_emulated.InputError, match="nonsense"):
        cuda_emulated.build(tmp_path / "wrong.cu")


def test_the_launch_table_agrees_with_the_kernels():
    driver = EmulatedDriver()
    letters = {name: letters for name, (_, letters) in driver.kernels.items()}
    assert letters == cuda_launch.KERNELS
    text = (CUDA / "layout.cuh").read_text() + (CUDA / "displacement.cu").read_text()
    constants = dict(re.findall(r"(?:constexpr int|,) (\w+) = (\d+)", text))
    for name, value in constants.items():
        if hasattr(cuda_launch, name):
            assert getattr(cuda_launch, name) == int(value), name
    assert {"PITCH", "FORWARD_ROWS", "TAPS", "ROWS_Y", "COPY_THREADS"} <= set(constants)
