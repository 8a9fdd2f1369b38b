"""Resident training: the weights stay on the chip while ``cuda/resident.cu`` trains a network."""

from __future__ import annotations

import numpy as np

from mlpcore.backends.cuda.memory import DeviceArray, Driver, ResidentKernel, allocate
from mlpcore.backends.cuda.network import DeviceNetwork
from mlpcore.errors import InputError
from mlpcore.network import Network

#: The kernel, and its parameters as letters of `struct`.
KERNEL, FORMATS = "resident_train_kernel", "PiiIP"

#: resident_control of cuda/resident.cu.
CONTROL = np.dtype(
    [("limit", "u8"), ("given_up", "i4"), ("block", "i4"), ("step", "i4"), ("not_finite", "i4")],
    align=True,
)

#: Seconds that a block waits for another before it gives up: a million times a normal wait.
WAIT_SECONDS = 5.0

#: SAMPLES_PER_BLOCK of cuda/resident.cu. Launches begin at multiples of it; otherwise the bits
#: would depend on the speed of the device.
BLOCK = 64

#: Samples of a launch at most: some tens of milliseconds, after which Python sees signals.
MAX_STEPS = 8192

#: A sample's ticket tells its words from those of two samples before (cuda/exchange.cuh).
#: Tickets count modulo 4. Words that are zero belong to tickets 0 and 1.
TICKETS = 4
FIRST_TICKET = 2


class ResidentNetwork(DeviceNetwork):
    """A network whose weights stay in registers and shared memory during a launch.

    Parameters
    ----------
    driver, network
        The device, and the network to load.
    kernel
        The resident kernel for such networks.

    Attributes
    ----------
    wait_seconds : float
        A block that waits longer for another block gives up.
    """

    granularity = min_chunk = BLOCK
    max_chunk = MAX_STEPS

    def __init__(self, driver: Driver, network: Network, kernel: ResidentKernel):
        super().__init__(driver, network)
        self.wait_seconds = WAIT_SECONDS
        self._kernel, self.plan = kernel, kernel.plan
        #: resident_job of cuda/resident.cu: six addresses, then those of the weights.
        self._job = np.zeros(6 + self.n_layers, np.uint64)
        sizes = [self._job.nbytes, CONTROL.itemsize, 4 * self.plan.words]
        with driver.active():
            self._resident_memory = allocate(driver, "resident training", sizes)
            self._job_at, self._control_at, self._words_at = map(int, self._resident_memory)
            self._restart()

    def _restart(self) -> None:
        """Clears all words, so that none has a ticket that is still to come."""
        self.driver.upload(self._words_at, np.zeros(self.plan.words, np.uint32))
        self._ticket = FIRST_TICKET
        #: Whether words and ticket agree; unknown until the end of a launch has been seen.
        self._settled = True

    def begin(self, images: DeviceArray, labels: DeviceArray, order: DeviceArray) -> None:
        samples = images.address, labels.address, order.address
        weights = (layer.weights for layer in self.layers)
        self._job[:] = *samples, self.rates, self.state, self._words_at, *weights
        self.driver.upload(self._job_at, self._job)

    def enqueue(self, begin: int, steps: int) -> None:
        if not self._settled:  # the last launch was interrupted, or a block gave up
            self._restart()
        control = np.zeros(1, CONTROL)
        control["limit"] = int(1e9 * self.wait_seconds)
        self.driver.upload(self._control_at, control)
        self._settled = False
        self._kernel.launch((self._job_at, begin, steps, self._ticket, self._control_at))
        self._ticket = (self._ticket + steps) % TICKETS

    def weights_are_finite(self) -> bool:
        """Whether all weights are finite after the launch.

        Raises
        ------
        InputError
            When a block has waited too long for another; the weights are then lost.
        """
        downloaded = np.empty(1, CONTROL)
        self.driver.download(downloaded, self._control_at)
        control = downloaded[0]
        if control["given_up"]:
            boundary, backward = divmod(int(control["given_up"]) - 1, 2)
            raise InputError(
                f"resident training gave up on {self.driver.description}: block "
                f"{control['block']} waited more than {self.wait_seconds:g} s for "
                f"{self._exchanged(boundary, backward)} of sample {control['step']} of a launch; "
                "the weights in its memory are lost"
            )
        self._settled = True
        return not control["not_finite"]

    def _exchanged(self, boundary: int, backward: int) -> str:
        """What blocks exchange at a boundary."""
        if boundary == self.n_layers:
            return "the outputs"
        return f"the {'deltas' if backward else 'states'} of hidden layer {boundary}"
