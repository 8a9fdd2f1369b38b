"""`Backend.train` tells its caller about every sample, whatever ends the call."""

import signal

import numpy as np
import pytest

from emulated import get_backend
from mlpcore.network import Network
from small_runs import DATA, same_weights

FLAT = DATA.train_images.reshape(-1, 35)


def test_a_signal_between_two_polls_loses_no_sample(simd_name):
    """Also one after the last poll: these samples take less time than lies between two."""
    backend, order = (
        get_backend(simd_name, threads=2),
        np.resize(np.arange(230, dtype=np.int32), 5000),
    )
    network, again = (Network((35, 300, 3), seed=1) for _ in range(2))

    def interrupt(*arguments):
        raise KeyboardInterrupt

    def start(result):
        if not results:
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
        results.append(result)

    results, before = [], signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            backend.train(network, FLAT, DATA.train_labels, order, 0.01, start)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    samples = results[-1].samples
    backend.train(again, FLAT, DATA.train_labels, order[:samples], 0.01)
    assert samples > 0
    assert same_weights(network, again)
