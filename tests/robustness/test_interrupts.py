"""Ctrl-C while modules are imported, a quiet end with status 130, and in processes of a cluster."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mlpcore.stopping import interrupts_kept_from_children, stopping

#: Interrupts when a module is about to be imported, as if by chance, and swallows what that raises.
CODE = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job lacks

class Interrupting:
    def find_spec(self, name, *args):
        if name == sys.argv[-1]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:
                if SWALLOWED:
                    return
                raise

sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize("swallowed", [False, True])
def test_an_interrupt_while_modules_are_imported(tmp_path, swallowed):
    code = CODE.replace("SWALLOWED", str(swallowed))
    code += "sys.argv = ['mlpcore', 'train', 'mlpcore.training.config']; "
    code += "runpy.run_module('mlpcore', run_name='__main__')"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


def test_an_interrupt_comes_to_this_process_and_not_to_its_children():
    child = [sys.executable, "-c", "import os; os.kill(os.getpid(), 2); print('alive')"]
    with stopping(lambda: None) as signals, interrupts_kept_from_children():
        result = subprocess.run(child, capture_output=True, text=True)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            time.sleep(0 if signals else 0.01)
    assert signals == [signal.SIGINT]
    assert (result.stdout, result.stderr) == ("alive\n", "")
