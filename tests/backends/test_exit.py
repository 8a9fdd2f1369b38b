"""The interpreter may end while a daemon thread is in C."""

import subprocess
import sys

CODE = """
import sys, threading, time
import numpy as np
from mlpcore import Network
from mlpcore.backends import simd

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

sys.modules["slow"] = Slow()  # its end takes long, with the other modules' end
simd._at_most_cores = int
network, backend = Network((300, 1000, 1000, 10), seed=1), simd.SimdBackend("scalar", 2)
images, labels = np.zeros((20000, 300), np.float32), np.zeros(20000, np.uint8)
called = threading.Event()

def wait(sleep=time.sleep):
    called.set()
    sleep(0.3)  # Python then ends this thread, while another one of C works on

def count(depth):
    # C keeps what its threads share deep in this thread's stack. The system frees that, but not
    # the stack's first pages.
    if depth == 0:
        return backend.count_errors(network, images, labels, wait)
    return list(map(count, [depth - 1]))

threading.Thread(target=count, args=(100,), daemon=True).start()
called.wait()
"""


def test_the_interpreter_ends_while_a_callback_waits():
    """Python ended the thread in the callback; other threads then read from its freed stack."""
    subprocess.run([sys.executable, "-c", CODE], check=True)
