"""Ctrl-C and SIGTERM during training, which stops and is saved."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker


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


@contextlib.contextmanager
def interrupts_kept_from_children() -> Iterator[None]:
    """Begin processes to which Ctrl-C does nothing, although the terminal sends it to them, too.

    They inherit that the main thread, and threads that it begins, block the signal. A thread that
    does not receives it, and Python's handler runs in the main thread when that wakes up.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # the first call unblocks Ctrl-C in its thread
    end = threading.Event()
    threading.Thread(target=end.wait, daemon=True).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        end.set()
