"""Launches that several networks share, each on its own multiprocessors.

A small network does not fill a GPU. So the networks that train in several threads of a process meet
here: whoever comes last launches for all. The blocks of a network exchange words among themselves
only, so its bits do not depend on the others, nor on who they are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import SupportsInt

import numpy as np

from mlpcore.backends.cuda.memory import Driver, ResidentKernel, allocate
from mlpcore.backends.cuda.plan import ResidentPlan
from mlpcore.typing import AnyArray

#: Seconds for which the others wait for a network whose training has just returned.
LINGER = 0.005


class _Request:
    """A network's launch that has not ended."""

    def __init__(self, job: AnyArray):
        self.job, self.taken, self.done = job, False, False
        self.error: BaseException | None = None


class JointLaunches:
    """The launches of one kernel by networks in several threads.

    Parameters
    ----------
    driver, kernel
        The device, and the resident kernel of all networks.
    most
        How many networks fit side by side.
    """

    def __init__(self, driver: Driver, kernel: ResidentKernel, most: int):
        self._driver, self.kernel, self._most = driver, kernel, most
        self._changed = threading.Condition()
        self._training = 0  # threads within `training`
        self._left: list[float] = []  # until when the others wait for threads that have left it
        self._waiting: list[_Request] = []
        self._launching = False
        self._memory: SupportsInt | None = None  # of the jobs of a launch

    @contextmanager
    def training(self) -> Iterator[None]:
        """The thread's network trains within: the others wait for its launches.

        They also wait a little for it to come back, as it does for the next part of an epoch.
        """
        counted = False
        try:
            with self._changed:
                self._training, counted = self._training + 1, True
                if self._left:
                    self._left.pop()
            yield
        finally:
            with self._changed:
                self._training -= counted
                self._left.append(time.monotonic() + LINGER)
                self._changed.notify_all()

    def launch(self, job: AnyArray) -> None:
        """Launch a network's job together with others, and wait for its end.

        Called within `training`. The error of a joint launch is raised in every thread of it, an
        interrupt in its own thread only.
        """
        request, together = _Request(job), []
        try:
            with self._changed:
                self._waiting.append(request)
                self._changed.notify_all()
                while not request.done and not self._may_lead(request):
                    self._changed.wait(self._seconds_to_wait())
                if not request.done:
                    together = self._take()
            if together:
                self._lead(together)
        except BaseException:
            self._withdraw(request, together)
            raise
        if request.error is not None:
            raise request.error

    def _may_lead(self, request: _Request) -> bool:
        """Whether a request is the first of those that wait, and nobody else is waited for."""
        if self._launching or self._waiting[0] is not request:
            return False
        self._left = [until for until in self._left if until > time.monotonic()]
        return len(self._waiting) >= min(self._training + len(self._left), self._most)

    def _seconds_to_wait(self) -> float | None:
        """How long to wait for those who have left; None to wait until something changes."""
        if self._launching or not self._left:
            return None
        return max(0.001, min(self._left) - time.monotonic())

    def _take(self) -> list[_Request]:
        """The requests of the next launch, which begins."""
        together, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        for each in together:
            each.taken = True
        self._launching = True
        return together

    def _lead(self, together: list[_Request]) -> None:
        """Launch, and wake those whose launch it was."""
        error: Exception | None = None
        try:
            jobs = np.concatenate([each.job for each in together])
            if self._memory is None:
                (self._memory,) = allocate(self._driver, "jobs", [self._most * jobs[0].nbytes])
            self._driver.upload(int(self._memory), jobs)
            self.kernel.launch(int(self._memory), len(together))
            self._driver.synchronize()
        except Exception as caught:
            error = caught
        self._end(together, error)

    def _end(self, together: list[_Request], error: Exception | None) -> None:
        with self._changed:
            for each in together:
                each.done, each.error = True, error
            self._launching = False
            self._changed.notify_all()

    def _withdraw(self, request: _Request, together: list[_Request]) -> None:
        """After an interrupt: nobody launches the request any more, or its launch has ended."""
        if together and not request.done:  # it led
            with suppress(Exception):
                self._driver.synchronize()
            self._end(together, None)
        with self._changed:
            if request in self._waiting:
                self._waiting.remove(request)
            while request.taken and not request.done:  # it runs, and its memory has to stay
                self._changed.wait()
            self._changed.notify_all()


_MADE: dict[tuple[Driver, ResidentPlan, int], JointLaunches] = {}
_MAKING = threading.Lock()


def joint_launches(driver: Driver, plan: ResidentPlan, most: int) -> JointLaunches:
    """Where the networks of a plan meet: the same for all trainings in this process.

    Raises
    ------
    DoesNotFit
        As `Driver.specialise`.
    """
    with _MAKING:
        if (driver, plan, most) not in _MADE:
            _MADE[driver, plan, most] = JointLaunches(driver, driver.specialise(plan), most)
        return _MADE[driver, plan, most]
