"""Ctrl-C while modules are imported, and at the end of a process: a quiet end.

A KeyboardInterrupt would end in a traceback there, or be lost. This module is imported first.
What training does is in `mlpcore.stopping`.
"""

import os
import signal


def leave_on_interrupt() -> None:
    """Let Ctrl-C end this process at once, without a word, with status 130.

    Only where nothing is being written.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again after `leave_on_interrupt`."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: object) -> None:
    os._exit(128 + number)
