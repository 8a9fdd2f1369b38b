"""Resident training: launches of ``cuda/resident.cu`` for one network or several at once."""

from __future__ import annotations

import numpy as np

from mlpcore.backends.cuda.memory import DeviceArray, DeviceNetwork, Driver, allocate
from mlpcore.backends.cuda.plan import VERSIONS, Plan
from mlpcore.errors import InputError

#: The kernel, and its parameters in the letters of `struct`.
KERNEL, FORMATS = "resident_train_kernel", "PiiIP"

#: resident_control of cuda/resident.cu.
CONTROL = np.dtype(
    [
        ("limit", "u8"),
        ("count", "u4"),
        ("given_up", "i4"),
        ("block", "i4"),
        ("step", "i4"),
        ("not_finite", "i4"),
    ],
    align=True,
)

#: Seconds that a block waits for another, a million times what it takes, before it gives up.
WAIT_SECONDS = 5.0

#: SAMPLES_PER_BLOCK of cuda/resident.cu: launches begin at multiples, or bits would depend on
#: how fast a device is.
BLOCK = 64

#: Samples of a launch at most: some tens of milliseconds, after which Python looks at signals.
MAX_STEPS = 8192

#: A sample's epoch tells its words from those two samples before (cuda/exchange.cuh): it counts
#: modulo so many. Words that are zero are of epochs 0 and 1.
EPOCHS = 4
FIRST_EPOCH = 2


class Resident:
    """Words, jobs and kernel of one or several networks that train in the same launches.

    Parameters
    ----------
    driver
        The device.
    plan
        Of each network.
    networks
        How many.
    version
        Of the kernel, one of `resident_plan.VERSIONS`.
    wait_seconds
        After which a block that waits for another gives up.
    """

    def __init__(
        self,
        driver: Driver,
        plan: Plan,
        networks: int = 1,
        version: str = VERSIONS[-1],
        wait_seconds: float = WAIT_SECONDS,
    ):
        self.driver, self.plan, self.version = driver, plan, version
        self.wait_seconds = wait_seconds
        #: Samples of the next launch: what the last ones showed to take a good while.
        self.chunk = BLOCK
        #: Whether words and epoch agree: not before the end of a launch is known.
        self._settled = True
        self._jobs = np.zeros((networks, 6 + plan.n_layers), np.uint64)
        self._words = np.zeros(networks * plan.words, np.uint32)
        sizes = [self._jobs.nbytes, CONTROL.itemsize, self._words.nbytes]
        with driver.active():
            self._kernel = driver.specialise(plan, version)
            self._memory = allocate(driver, "resident training", sizes)
            self._restart()

    def _restart(self) -> None:
        """No word is of an epoch to come."""
        self._epoch = FIRST_EPOCH
        self.driver.upload(int(self._memory[2]), self._words)
        self._settled = True

    def assign(
        self,
        networks: list[DeviceNetwork],
        images: list[DeviceArray],
        labels: list[DeviceArray],
        orders: list[DeviceArray],
    ) -> None:
        """What each network trains on from now on: its images, labels and order."""
        for i, network in enumerate(networks):
            samples = images[i].address, labels[i].address, orders[i].address
            words = int(self._memory[2]) + 4 * i * self.plan.words
            weights = (layer.weights for layer in network.layers)
            self._jobs[i] = *samples, network.rates, network.state, words, *weights
        self.driver.upload(int(self._memory[0]), self._jobs)

    def enqueue(self, begin: int, steps: int) -> None:
        """Starts so many samples of each network, from an index into their orders on."""
        if not self._settled:  # the last launch was interrupted, or a block gave up
            self._restart()
        control = np.zeros(1, CONTROL)
        control["limit"] = int(1e9 * self.wait_seconds)
        jobs, address, _ = map(int, self._memory)
        self.driver.upload(address, control)
        blocks = len(self._jobs) * self.plan.blocks
        self._settled = False
        self._kernel.launch(blocks, (jobs, begin, steps, self._epoch, address))
        self._epoch = (self._epoch + steps) % EPOCHS

    def check(self) -> bool:
        """Whether all weights are finite after what was enqueued.

        Raises
        ------
        InputError
            When a block has waited too long for another; the weights are then of no use.
        """
        downloaded = np.empty(1, CONTROL)
        self.driver.download(downloaded, int(self._memory[1]))
        control = downloaded[0]
        if control["given_up"]:
            boundary, backward = divmod(int(control["given_up"]) - 1, 2)
            raise InputError(
                f"resident training gave up on {self.driver.description}: block "
                f"{control['block']} waited more than {self.wait_seconds:g} s for "
                f"{self._name(boundary, backward)} of sample {control['step']} of a launch; "
                "the weights in its memory are lost"
            )
        self._settled = True
        return not control["not_finite"]

    def _name(self, boundary: int, backward: int) -> str:
        """What is exchanged at a boundary."""
        if boundary == self.plan.n_layers:
            return "the outputs"
        return f"the {'deltas' if backward else 'states'} of hidden layer {boundary}"


class ResidentStepper:
    """Enqueues steps of networks on their images, by launches of the resident kernel."""

    granularity = BLOCK

    def __init__(
        self,
        resident: Resident,
        networks: list[DeviceNetwork],
        images: list[DeviceArray],
        labels: list[DeviceArray],
        orders: list[DeviceArray],
    ):
        self.driver, self.resident = resident.driver, resident
        self._done = 0
        resident.assign(networks, images, labels, orders)

    @property
    def chunk(self) -> int:
        return self.resident.chunk

    @chunk.setter
    def chunk(self, steps: int) -> None:
        self.resident.chunk = max(BLOCK, min(steps, MAX_STEPS))

    def enqueue(self, steps: int) -> None:
        self.resident.enqueue(self._done, steps)
        self._done += steps

    def check(self) -> bool:
        return self.resident.check()
