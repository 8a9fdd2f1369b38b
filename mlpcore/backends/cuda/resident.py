"""Resident training: the weights stay on the chip while ``cuda/resident.cu`` trains a network."""

import numpy as np

from mlpcore.backends.cuda.driver import CudaDriver, ResidentKernel
from mlpcore.backends.cuda.launch import launch
from mlpcore.backends.cuda.memory import DeviceArray, allocate
from mlpcore.backends.cuda.network import DeviceNetwork
from mlpcore.backends.cuda.sources import constants, struct
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.typing import AnyArray

#: The report of a launch to the host.
CONTROL = struct("resident.cu", "resident_control")

#: Seconds that a block waits for another before it gives up: a million times a normal wait.
WAIT_SECONDS = 5.0

#: Launches begin at multiples of it; otherwise the bits would depend on the speed of the device.
BLOCK = constants("resident.cu").SAMPLES_PER_BLOCK

#: Samples of a launch at most: some tens of milliseconds, after which Python sees signals.
MAX_STEPS = 8192

#: A sample's ticket tells its words from those of two samples before (cuda/exchange.cuh).
#: Tickets count modulo 4. Words that are zero belong to tickets 0 and 1.
TICKETS = 4
FIRST_TICKET = 2


class ResidentNetwork(DeviceNetwork):
    """A network whose weights stay in registers and shared memory during a launch of a kernel."""

    granularity = BLOCK
    min_chunk = BLOCK
    max_chunk = MAX_STEPS

    def __init__(self, driver: CudaDriver, network: Network, kernel: ResidentKernel):
        super().__init__(driver, network)
        self.wait_seconds = WAIT_SECONDS  # a block that waits longer for another gives up
        self._kernel, self.plan = kernel, kernel.plan
        self._job = job = np.zeros(1, struct("resident.cu", "resident_job", LAYERS=self.n_layers))
        work = {"control": CONTROL.itemsize, "words": 4 * self.plan.words}
        work["products"] = 4 * MAX_STEPS
        with driver.active():
            sizes = [job.nbytes, *work.values()]
            self._resident_memory = allocate(driver, "resident training", sizes)
            self._job_at, *addresses = map(int, self._resident_memory)
            for name, address in zip(work, addresses):
                job[name] = address
            self._restart()
        job["rates"], job["state"] = self.rates, self.state
        job["weights"] = [layer.weights for layer in self.layers]

    def _restart(self) -> None:
        """Clears all words, so that none has a ticket that is still to come."""
        self._upload("words", np.zeros(self.plan.words, np.uint32))
        self._ticket = FIRST_TICKET
        #: Whether words and ticket agree; unknown until the end of a launch has been seen.
        self._settled = True

    def begin(self, images: DeviceArray, labels: DeviceArray, order: DeviceArray) -> None:
        self._order = order
        for name, array in (("images", images), ("labels", labels), ("order", order)):
            self._job[name] = array.address

    def _upload(self, name: str, array: AnyArray) -> None:
        """Copies to what a field of the job points to."""
        self.driver.upload(int(self._job[name][0]), array)

    def enqueue(self, begin: int, steps: int) -> None:
        if not self._settled:  # the last launch was interrupted, or a block gave up
            self._restart()
        control = np.zeros(1, CONTROL)
        control["limit"] = int(1e9 * self.wait_seconds)
        self._upload("control", control)
        self._settled = False
        if steps > 1:
            values = {name: int(self._job[name][0]) for name in ("images", "products")}
            values |= {"n_in": self.layer_sizes[0], "order": self._order[begin:].address}
            self.driver.launch(launch("input_products_kernel", (steps - 1,), **values))
        self._job["begin"], self._job["steps"] = begin, steps
        self._job["first_ticket"] = self._ticket
        self.driver.upload(self._job_at, self._job)
        self._kernel.launch(self._job_at)
        self._ticket = (self._ticket + steps) % TICKETS

    def weights_are_finite(self) -> bool:
        """Looks whether all weights are finite after the launch.

        An InputError when a block has waited too long for another; the weights are then lost.
        """
        downloaded = np.empty(1, CONTROL)
        self.driver.download(downloaded, int(self._job["control"][0]))
        control = downloaded[0]
        if control["given_up"]:
            # Exchanges are numbered as in cuda/resident_layout.cuh.
            exchange = int(control["given_up"]) - 1
            backward, boundary = divmod(exchange, self.n_layers)
            what = f"the {'deltas' if backward else 'states'} of hidden layer {boundary + 1}"
            what = "the outputs" if exchange == self.n_layers - 1 else what
            raise InputError(
                f"resident training gave up on {self.driver.description}: block "
                f"{control['block']} waited more than {self.wait_seconds:g} s for {what} of sample "
                f"{control['step']} of a launch; the weights in its memory are lost"
            )
        self._settled = True
        return not control["not_finite"]
