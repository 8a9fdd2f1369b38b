"""Streaming training: kernels for each layer, many steps captured in one graph.

Python then makes one call for a thousand kernels or more.
"""

from typing import Any

import numpy as np

from mlpcore.backends.cuda.driver import CudaDriver
from mlpcore.backends.cuda.launch import CU, Launch, ceil_div, for_each, launch
from mlpcore.backends.cuda.memory import DeviceArray
from mlpcore.backends.cuda.network import DeviceNetwork
from mlpcore.network import Network

#: Steps of a long graph. Graphs of one step do the rest, so a signal never splits a sample.
STEPS_PER_GRAPH = 64


def step_launches(network: DeviceNetwork, images: int, labels: int, order: int) -> list[Launch]:
    """One step of on-line back-propagation in the paper's order: all deltas, then all updates."""
    layers, states, deltas = network.layers, network.states, network.deltas
    inputs, partials = [network.inputs, *states[:-1]], network.partials
    sample = {"images": images, "labels": labels, "order": order, "state": network.state}
    n_in, top = network.layer_sizes[0], network.n_layers - 1
    launches = [for_each("gather_kernel", n_in, **sample, n_in=n_in, inputs=network.inputs)]
    for i, layer in enumerate(layers):
        values = layer.values | {"inputs": inputs[i], "partials": partials, "outputs": states[i]}
        strips = ceil_div(layer.n_out, CU.FORWARD_THREADS), layer.n_strips
        launches.append(launch("forward_partial_kernel", strips, **values))
        neurons = (ceil_div(layer.n_out, CU.SUM_THREADS),)
        launches.append(launch("forward_sum_kernel", neurons, **values))
    values = layers[top].values | sample | {"outputs": states[top], "deltas": deltas[top]}
    launches.append(launch("output_deltas_kernel", (1,), **values))
    for i in range(top, 0, -1):
        layer = layers[i]
        values = layer.values | {"deltas": deltas[i], "states": inputs[i], "partials": partials}
        values |= {"activation": network.hidden, "deltas_below": deltas[i - 1]}
        patches = layer.n_patches, ceil_div(layer.n_in + 1, CU.TILE)
        launches.append(launch("backward_partial_kernel", patches, **values))
        below = (ceil_div(layer.n_in, CU.SUM_THREADS),)
        launches.append(launch("backward_sum_kernel", below, **values))
    for i in range(top, -1, -1):
        layer = layers[i]
        values = layer.values | {"inputs": inputs[i], "deltas": deltas[i]}
        grid = ceil_div(layer.n_out, CU.UPDATE_THREADS), ceil_div(layer.n_in + 1, CU.UPDATE_ROWS)
        rate = network.rates + 4 * i
        launches.append(launch("update_kernel", grid, **values, learning_rate=rate))
    return launches


class StreamingNetwork(DeviceNetwork):
    """A network whose weights are read from device memory for every sample."""

    granularity = STEPS_PER_GRAPH

    def __init__(self, driver: CudaDriver, network: Network):
        super().__init__(driver, network)
        #: Graphs read the order here, so its address must not change between epochs.
        self._order: DeviceArray | None = None
        self._addresses: tuple[int, ...] = ()  # of images, labels and order in the graphs
        self._graphs: dict[int, Any] = {}  # by their number of steps

    def reserve(self, images: DeviceArray, labels: DeviceArray) -> None:
        self._use(images, labels, len(images))
        for steps in (1, STEPS_PER_GRAPH):
            if steps <= len(images):
                self._graph(steps)

    def begin(self, images: DeviceArray, labels: DeviceArray, order: DeviceArray) -> None:
        room = self._use(images, labels, len(order))
        self.driver.copy(room.address, order.address, order.nbytes)

    def enqueue(self, begin: int, steps: int) -> None:
        for length in (STEPS_PER_GRAPH, 1):
            for _ in range(steps // length):
                self.driver.replay(self._graph(length))
            steps %= length

    def _use(self, images: DeviceArray, labels: DeviceArray, n_steps: int) -> DeviceArray:
        """Drops graphs of other arrays; the room for the order, large enough for `n_steps`."""
        if self._order is None or len(self._order) < n_steps:
            self._order = None  # freed before more is taken
            self._order = DeviceArray(self.driver, (n_steps,), np.int32)
        addresses = images.address, labels.address, self._order.address
        if addresses != self._addresses:
            self._addresses, self._graphs = addresses, {}
        return self._order

    def _graph(self, steps: int) -> Any:
        """A graph of so many steps, captured when it is first needed."""
        if steps not in self._graphs:
            launches = step_launches(self, *self._addresses)
            self._graphs[steps] = self.driver.capture(launches * steps)
        return self._graphs[steps]
