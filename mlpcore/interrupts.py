"""Ctrl-C while modules are imported, and at the end of a process: a quiet end.

A KeyboardInterrupt would end in a traceback there, or be lost. This module has to come first, so it
imports only what Python has loaded itself. What a training does is in `mlpcore.stopping`.
"""

import _signal  # type: ignore[import-not-found]  # `signal` takes 20 ms to import, for its enums
import os


def leave_on_interrupt() -> None:
    """Let Ctrl-C end this process at once, without a word, with status 130.

    Only where nothing is being written.
    """
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again after `leave_on_interrupt`."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _leave(number: int, frame: object) -> None:
    os._exit(128 + number)
