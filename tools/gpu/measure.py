"""Looks at the GPU and times training on it: `python -m gpu.measure NAME FILE` writes JSON.

A result with the key "error" misses what is required, and the exit status is then 1.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np

from gpu import exercise
from mlpcore import backends
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.plan import DoesNotFit, make_plan
from mlpcore.backends.cuda.resident import ResidentNetwork, measured_delays
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS
from mlpcore.store import provenance
from mlpcore.typing import Float32Array, UInt8Array

#: The paper's networks on 29 x 29 pixels and ten digits.
NETWORKS = {preset: (841, *hidden, 10) for preset, hidden in PRESETS.items()}

#: Networks whose training is compared with another program, with their activations and losses.
COMPARED = [(preset, ("tanh", "squared")) for preset in NETWORKS]
COMPARED += [("net1", ("relu", "cross-entropy"))]


def random_samples(n: int) -> tuple[Float32Array, UInt8Array]:
    """Images (n, 841) and labels (n,)."""
    rng = np.random.default_rng(0)
    images = rng.uniform(-1, 1, (n, 841)).astype(np.float32)
    return images, rng.integers(0, 10, n).astype(np.uint8)


def device(cuda: CudaBackend) -> dict[str, Any]:
    """Which device and commit this is, and which networks cannot be resident and why.

    Compiles all kernels that are not built yet, at once, so that no later step waits for nvcc.
    A network that streams although it fits is an error: it trains correctly but slowly, and
    nothing else would show that.
    """

    def load(network: Network) -> str | None:
        backend = CudaBackend(cuda.driver)
        backend.load(network)
        return backend.notice

    def fits(network: Network) -> bool:
        try:
            make_plan(network.layer_sizes, cuda.driver.limits)
        except DoesNotFit:
            return False
        return True

    networks = [Network(NETWORKS[preset], None, *kind) for preset, kind in COMPARED]
    networks += exercise.networks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        shared = [("resident-8", networks[0]), ("resident-2", exercise.networks()[1])]
        loading = [pool.submit(CudaBackend(cuda.driver, each).load, net) for each, net in shared]
        notices = list(pool.map(load, networks))
        for each in loading:
            each.result()
    streaming = {network: notice for network, notice in zip(networks, notices) if notice}
    errors = [f"{network} fits but streams" for network in streaming if fits(network)]
    return {
        "description": cuda.description,
        # A copy of the tree without .git cannot name its commit.
        "commit": provenance.revision() or os.environ.get("COMMIT", "unknown"),
        "not_resident": {str(network): notice for network, notice in streaming.items()},
        **({"error": "; ".join(errors)} if errors else {}),
    }


def steps(cuda: CudaBackend) -> dict[str, Any]:
    """Microseconds of an on-line step by schedule and network."""
    images, labels = (cuda.put(array) for array in random_samples(1000))
    result: dict[str, Any] = {"resident": {}, "streaming": {}}
    for schedule, n in (("resident", 16_384), ("streaming", 4_000)):
        backend = CudaBackend(cuda.driver, schedule=schedule)
        order = np.random.default_rng(1).integers(0, 1000, n).astype(np.int32)
        for preset, sizes in NETWORKS.items():
            network = backend.load(Network(sizes, seed=1))
            if backend.notice is None:
                backend.train(network, images, labels, order, 1e-3)  # to warm up
                start = time.perf_counter()
                backend.train(network, images, labels, order, 1e-3)
                result[schedule][preset] = 1e6 * (time.perf_counter() - start) / n
    return result


def delays(cuda: CudaBackend) -> dict[str, Any]:
    """Microseconds of a resident step by network: equal delays of all exchanges, then the chosen.

    The samples are the same each time. Weights that differ by a bit are an error.
    """
    images, labels = (cuda.put(array) for array in random_samples(1000))
    order = np.random.default_rng(1).integers(0, 1000, 8192).astype(np.int32)
    result: dict[str, Any] = {}
    for preset, sizes in NETWORKS.items():
        start, found = Network(sizes, seed=1), {}
        network = CudaBackend(cuda.driver).load(start)
        if not isinstance(network, ResidentNetwork):
            continue
        chosen, weights = measured_delays(network), []
        for tried in [*((each,) * len(chosen) for each in range(0, 700, 100)), chosen]:
            network = cast(ResidentNetwork, CudaBackend(cuda.driver).load(start))
            network.delays = tried
            cuda.train(network, images, labels, order[:64], 1e-3)  # to warm up
            began = time.perf_counter()
            cuda.train(network, images, labels, order, 1e-3)
            found[str(tried)] = 1e6 * (time.perf_counter() - began) / len(order)
            trained = start.copy()
            network.store(trained)
            weights.append(trained.weights)
        same = all(np.array_equal(a, b) for each in weights for a, b in zip(each, weights[0]))
        result[preset] = {"chosen": chosen, "us": found, "same_bits": same}
    if not all(each["same_bits"] for each in result.values()):
        result["error"] = "delays change weights"
    return result


def main(name: str, file: str) -> int:
    measure = {"device": device, "steps": steps, "delays": delays}[name]
    result = measure(cast(CudaBackend, backends.get("cuda")))
    Path(file).write_text(json.dumps(result, indent=2) + "\n")
    return 1 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
