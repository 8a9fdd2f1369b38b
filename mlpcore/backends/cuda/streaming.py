"""The loop over samples: graphs of many steps, so that Python's part is a call per graph."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from mlpcore.backends.base import (
    LearningRate,
    Progress,
    TrainingResult,
    layer_rates,
)
from mlpcore.backends.cuda import launch as cuda_launch
from mlpcore.backends.cuda.launch import Launch
from mlpcore.backends.cuda.memory import DeviceArray, DeviceNetwork
from mlpcore.backends.cuda.resident import ResidentStepper

#: Seconds between calls of the caller's progress function.
INTERVAL = 0.05


def step_launches(
    network: DeviceNetwork, images: DeviceArray, labels: DeviceArray, order: DeviceArray
) -> list[Launch]:
    """One step of on-line back-propagation, in the paper's order: all deltas, then all updates."""
    net, top = network, network.n_layers - 1
    inputs = [net.inputs, *net.states[:-1]]
    launches = cuda_launch.gather(
        images.address, order.address, net.state, net.layer_sizes[0], net.inputs
    )
    for i, layer in enumerate(net.layers):
        launches += cuda_launch.forward(layer, inputs[i], net.partials, net.states[i])
    launches += cuda_launch.output_deltas(
        net.states[top],
        net.layer_sizes[-1],
        labels.address,
        order.address,
        net.state,
        net.deltas[top],
    )
    for i in range(top, 0, -1):
        launches += cuda_launch.backward(
            net.layers[i], net.deltas[i], inputs[i], net.partials, net.deltas[i - 1]
        )
    for i in range(top, -1, -1):
        launches += cuda_launch.update(net.layers[i], inputs[i], net.deltas[i], net.rate(i))
    return launches


class Stepper:
    """Enqueues steps of one network on one set of images.

    Parameters
    ----------
    steps_per_graph
        Steps of a long graph; what is left over goes by graphs of one step, so that a signal
        always falls between two samples. 0 launches every kernel from Python instead, which is
        there to be measured, and which a signal can leave in the middle of a sample.
    """

    def __init__(
        self,
        network: DeviceNetwork,
        images: DeviceArray,
        labels: DeviceArray,
        order: DeviceArray,
        steps_per_graph: int,
    ):
        self.driver = network.driver
        self.steps_per_graph = steps_per_graph
        self.chunk = 1  # steps to enqueue at a time
        self.granularity = max(1, steps_per_graph)  # to which many steps are rounded
        self.launches = step_launches(network, images, labels, order)
        key = images.address, labels.address, order.address
        if network.graphs.get("key") != key:
            network.graphs = {"key": key}
        self.graphs = network.graphs

    def enqueue(self, steps: int) -> None:
        """Starts so many steps."""
        if self.steps_per_graph == 0:
            for _ in range(steps):
                for launch in self.launches:
                    self.driver.launch(launch)
            return
        for length in (self.steps_per_graph, 1):
            for _ in range(steps // length):
                self.driver.replay(self._graph(length))
            steps %= length

    def prepare(self, n_steps: int) -> None:
        """Captures the graphs that so many steps will need."""
        for length in (1, self.steps_per_graph):
            if self.steps_per_graph > 0 and length <= n_steps:
                self._graph(length)

    def check(self) -> bool:
        """Whether training may go on, as far as this schedule knows."""
        return True

    def _graph(self, steps: int) -> object:
        """A graph of so many steps, captured when it is first wanted."""
        if steps not in self.graphs:
            self.graphs[steps] = self.driver.capture(self.launches * steps)
        return self.graphs[steps]


def room_for_order(network: DeviceNetwork, n: int) -> DeviceArray:
    """Where an order of n steps goes: the same room if it fits, because graphs hold its address."""
    if network.order is None or len(network.order) < n:
        network.order = None
        network.order = DeviceArray(network.driver, (n,), np.int32)
    return network.order


def train(
    networks: list[DeviceNetwork],
    stepper: Stepper | ResidentStepper,
    n_steps: int,
    learning_rate: LearningRate,
    target: float,
    progress: Progress | None,
) -> list[TrainingResult]:
    """All steps, or as many as were done when progress said stop or raised.

    Training also ends where weights are no longer finite, if the schedule looks at them; the
    loss is then NaN.
    """
    for network in networks:
        network.set_rates(layer_rates(network, learning_rate))
        network.set_state(target)
    try:
        finite = _train_chunks(stepper, n_steps, networks, progress)
    except BaseException:
        if progress is not None:
            with suppress(BaseException):  # the first exception counts
                progress(_results(networks)[0])
        raise
    results = _results(networks)
    if progress is not None:
        progress(results[0])
    return results if finite else [replace(result, loss=math.nan) for result in results]


def _train_chunks(
    stepper: Stepper | ResidentStepper,
    n_steps: int,
    networks: list[DeviceNetwork],
    progress: Progress | None,
) -> bool:
    """The steps, as many at a time as take `INTERVAL`; whether the weights stay finite."""
    done, finite = 0, True
    while done < n_steps and finite:
        chunk = min(stepper.chunk, n_steps - done)
        if chunk > stepper.granularity:
            chunk -= chunk % stepper.granularity
        start = time.perf_counter()
        stepper.enqueue(chunk)
        stepper.driver.synchronize()
        finite = stepper.check()
        done += chunk
        if progress is not None and progress(_results(networks)[0]):
            break
        elapsed = time.perf_counter() - start
        wanted = int(chunk * INTERVAL / max(elapsed, 1e-6))
        stepper.chunk = max(1, min(wanted, 8 * chunk))
    return finite


def _results(networks: list[DeviceNetwork]) -> list[TrainingResult]:
    """Of what has been launched, when it is done."""
    states = [network.get_state() for network in networks]
    return [
        TrainingResult(int(state["step"]), int(state["errors"]), float(state["loss"]))
        for state in states
    ]
