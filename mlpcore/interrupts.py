"""Ctrl-C and SIGTERM: while modules are imported, at the end of a process, during a training.

While modules are imported, a KeyboardInterrupt would end in a traceback, or be lost. This module
imports little, because it has to come first.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator


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


@contextlib.contextmanager
def stopping(stop: Callable[[], object]) -> Iterator[list[int]]:
    """Let the first Ctrl-C or SIGTERM call `stop`, and others do nothing; yield what came."""
    signals: list[int] = []

    def handle(number: int, frame: object) -> None:
        signals.append(number)
        if len(signals) == 1:
            stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
