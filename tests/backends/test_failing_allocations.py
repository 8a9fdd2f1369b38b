"""Without memory or threads, C changes nothing, leaks nothing, and says so."""

import gc

import numpy as np
import pytest

from c_operations import SIZES, operations
from mlpcore import Network
from mlpcore.backends import simd

OPERATIONS = dict(operations())


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_allocation_and_every_start_of_a_thread_fails_once(name, monkeypatch):
    monkeypatch.setattr(simd, "_at_most_cores", int)  # three threads on any machine
    gc.collect()  # frees what other tests left
    start = Network(SIZES, 1, "relu", "cross-entropy", "he")
    expected, failed, n = OPERATIONS[name](start.copy()), True, 0
    while failed:
        network, n = start.copy(), n + 1
        simd._fail_call(n)
        try:
            result = OPERATIONS[name](network)
        except MemoryError:
            result = None
        finally:
            left, leaked = simd._calls()
            simd._fail_call(0)
        failed = left <= 0
        assert leaked == 0
        if result is None:
            assert failed and all(map(np.array_equal, network.weights, start.weights))
        else:  # with fewer threads, if a call has failed
            assert all(map(np.array_equal, result, expected))
    assert n > (20 if name == "train sparse" else 1)
