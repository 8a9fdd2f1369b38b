"""What `gpu_check` measures on a GPU: each function returns numbers for a JSON file."""

from __future__ import annotations

import hashlib
import os
import statistics
import time
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.backends.cuda import launch as cuda_launch
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.driver import CudaDriver
from mlpcore.backends.cuda.memory import DeviceArray
from mlpcore.backends.cuda.plan import VERSIONS, DoesNotFit, make_plan
from mlpcore.data import dataset
from mlpcore.deformation.deform import DeformationParameters, deform
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS
from mlpcore.typing import Float32Array, UInt8Array

#: Numbers by name, as JSON keeps them.
Result: TypeAlias = dict[str, Any]

#: 29 x 29 pixels; ten digits.
N_IN, N_CLASSES = 841, 10

#: Presets whose resident training is measured with every version of the kernel.
EVERY_VERSION = ("net1", "net4")

#: Networks of a committee.
MEMBERS = (2, 4, 8)

#: Layers around the edges of the kernels' blocks, for compute-sanitizer.
SHAPES = ((1, 1), (31, 257, 10), (32, 33, 255, 3), (15, 16, 17, 128))

#: Of the outputs where weights are compared: not the default, which would hide a lost one.
TARGET = 1.3

#: The paper's forward kernel 1, GB/s.
PAPERS_BANDWIDTH = 115.0

#: Longest that the deformation of a training set may take, ms.
MAX_DEFORMATION = 50.0


class CheckError(Exception):
    """A measurement that misses what is required; `result` is what was measured."""

    def __init__(self, message: str, result: Result):
        super().__init__(message)
        self.result = result


def _judge(result: Result, failures: dict[str, list[str]]) -> Result:
    """The result, unless there are failures: by their kind, what they are of."""
    lines = [f"{kind}: {', '.join(which)}" for kind, which in failures.items() if which]
    if lines:
        raise CheckError("; ".join(lines), result)
    return result


#: A failure that costs speed alone, and that nothing else would show.
STREAMS = "streams although it fits"


def streaming(backend: CudaBackend, sizes: tuple[int, ...], networks: int = 1) -> list[str]:
    """Why networks that were to be resident, and that a plan fits, are not; empty when they are."""
    if backend.notice is None:
        return []
    try:
        make_plan(sizes, backend.driver.limits, networks)
    except DoesNotFit:
        return []
    return [f"{networks} of layers {', '.join(map(str, sizes))} ({backend.notice})"]


def preset_sizes(preset: str) -> tuple[int, ...]:
    """Layer sizes of one of the paper's networks."""
    return (N_IN, *PRESETS[preset], N_CLASSES)


def _samples(n: int, seed: int = 0) -> tuple[Float32Array, UInt8Array]:
    """Random images and labels."""
    rng = np.random.default_rng(seed)
    images = rng.uniform(-1, 1, (n, N_IN)).astype(np.float32)
    return images, rng.integers(0, N_CLASSES, n).astype(np.uint8)


# ---- bandwidth -----------------------------------------------------------------------------


def bandwidth(backend: CudaBackend, copies: int = 32) -> Result:
    """Forward kernel 1 at net4's largest layer, beside a copy on the device.

    `from_memory` goes round so many copies of the layer that none is left in the cache;
    `from_cache` reads one again and again, as training a small network does.
    """
    n_in, n_out = max(
        zip(preset_sizes("net4"), preset_sizes("net4")[1:]), key=lambda s: s[0] * s[1]
    )
    shape = cuda_launch.Layer(n_in, n_out, 0)
    weights = DeviceArray(backend.driver, (copies, shape.rows, shape.stride), np.float32)
    values = np.random.default_rng(0).uniform(-0.05, 0.05, (shape.rows, shape.stride))
    for i in range(copies):
        weights[i : i + 1].set(values[None])
    inputs = backend.put(_samples(n_in)[0][:, 0])
    partials = backend.put(np.zeros(shape.n_partials, np.float32))

    def launches(n: int) -> list[cuda_launch.Launch]:
        layers = [cuda_launch.Layer(n_in, n_out, weights[i:].address) for i in range(n)]
        return [cuda_launch.forward(w, inputs.address, partials.address, 0)[0] for w in layers]

    n_bytes = 4 * (n_in + 1) * n_out + 4 * shape.n_strips * n_out
    driver = cast(CudaDriver, backend.driver)
    memory = driver.time(launches(copies), 20) / copies
    cache = driver.time(launches(1) * copies, 20) / copies
    result: Result = {
        "layer": [n_in, n_out],
        "bytes": n_bytes,
        "from_memory_GB_per_s": n_bytes / memory / 1e9,
        "from_cache_GB_per_s": n_bytes / cache / 1e9,
        "device_copy_GB_per_s": _copy_bandwidth(backend) / 1e9,
        "paper_GB_per_s": PAPERS_BANDWIDTH,
    }
    if result["from_memory_GB_per_s"] < 3 * PAPERS_BANDWIDTH:
        raise CheckError("forward kernel 1 is not many times faster than the paper's", result)
    return result


def _copy_bandwidth(backend: CudaBackend, n_bytes: int = 1 << 30) -> float:
    """Bytes read and written per second by a copy on the device, far beyond its cache."""
    arrays = [DeviceArray(backend.driver, (n_bytes,), np.uint8) for _ in range(2)]
    driver = cast(CudaDriver, backend.driver)
    seconds = driver.time_copy(arrays[0].address, arrays[1].address, n_bytes, 20)
    return 2 * n_bytes / seconds


# ---- on-line training ----------------------------------------------------------------------


def _training_rate(backend: CudaBackend, preset: str, n: int) -> float:
    """Seconds per sample, after as many to warm up and to capture the graphs."""
    images, labels = _samples(1000)
    network = backend.load(Network(preset_sizes(preset), seed=1))
    on_device = backend.put(images), backend.put(labels)
    order = np.random.default_rng(1).integers(0, 1000, n).astype(np.int32)
    backend.train(network, *on_device, order, 1e-3)
    start = time.perf_counter()
    backend.train(network, *on_device, order, 1e-3)
    return (time.perf_counter() - start) / n


def launches_per_sample(preset: str) -> int:
    """Gather, forward (2 a layer), output deltas, backward (2 a hidden layer), update."""
    n_layers = len(preset_sizes(preset)) - 1
    return 1 + 2 * n_layers + 1 + 2 * (n_layers - 1) + n_layers


def launches(backend: CudaBackend, n: int = 4000) -> Result:
    """Microseconds per on-line sample, and launches per second, by graphs and one by one."""
    results = {}
    backend = CudaBackend(backend.driver, schedule="streaming")
    plain = CudaBackend(backend.driver, steps_per_graph=0, schedule="streaming")
    for preset in PRESETS:
        graphs, single = _training_rate(backend, preset, n), _training_rate(plain, preset, n // 8)
        count = launches_per_sample(preset)
        results[preset] = {
            "us_per_sample": 1e6 * graphs,
            "us_per_sample_single_launches": 1e6 * single,
            "launches_per_sample": count,
            "launches_per_s": count / graphs,
            "launches_per_s_single": count / single,
            "updates_per_s": Network(preset_sizes(preset)).n_parameters / graphs,
        }
    return results


def accuracy(
    backend: CudaBackend,
    n: int = 2000,
    presets: Iterable[str] = tuple(PRESETS),
    device: str = "cuda",
) -> Result:
    """Weights after n on-line samples against float64.

    Tolerance: a step rounds a weight by at most half a unit in the last place, 2^-24 of its
    size, this way or that: after n steps by sqrt(n / 3) of these in the root mean square. The
    largest of 12 million such sums is 5.3 times that; 8 times leaves room for the rounding of
    activations and deltas, which the learning rate scales down.
    """
    from float64_twin import train_in_float64

    images, labels = _samples(n)
    order, results = np.arange(n, dtype=np.int32), {}
    wrong: list[str] = []
    streamed: list[str] = []
    for preset in presets:
        network = Network(preset_sizes(preset), seed=1)
        rates = [1e-3 / 2**layer for layer in range(network.n_layers)]  # to tell them apart
        oracle = train_in_float64(network, images, labels, order, rates, device, TARGET)
        start = network.weights + network.biases
        change = max(np.abs(a - b).max() for a, b in zip(oracle, start))
        loaded = backend.load(network)
        streamed += streaming(backend, preset_sizes(preset))
        seen = backend.train(
            loaded, backend.put(images), backend.put(labels), order, rates, None, TARGET
        )
        backend.store(loaded, network)
        got = network.weights + network.biases
        error = max(np.abs(a - b).max() for a, b in zip(oracle, got))
        tolerance = 8 * np.sqrt(n / 3) * 2.0**-24 * max(np.abs(a).max() for a in oracle)
        results[preset] = {
            "backend": backend.description,
            "samples": seen.samples,
            "largest_error": float(error),
            "tolerance": float(tolerance),
            "largest_change": float(change),
        }
        if not error <= tolerance:
            wrong.append(preset)
    return _judge(results, {"weights beyond the tolerance": wrong, STREAMS: streamed})


def streaming_accuracy(
    backend: CudaBackend, n: int = 1000, presets: Iterable[str] = ("net1", "net5")
) -> Result:
    """`accuracy` of the streaming schedule, for the fewest layers and the most."""
    return accuracy(CudaBackend(backend.driver, schedule="streaming"), n, presets)


# ---- resident training ---------------------------------------------------------------------


def _is_resident(backend: CudaBackend, preset: str) -> str | None:
    """None when a preset's weights can stay on the chip, else why not."""
    backend.load(Network(preset_sizes(preset)))
    return backend.notice


def resident(
    backend: CudaBackend, n: int = 16_384, every_version: Iterable[str] = EVERY_VERSION
) -> Result:
    """Microseconds per sample beside those predicted; of some presets, with every version."""
    results: Result = {}
    streamed: list[str] = []
    for preset in PRESETS:
        rows = results[preset] = {}
        for version in VERSIONS if preset in every_version else VERSIONS[-1:]:
            each = CudaBackend(backend.driver, schedule="resident", version=version)
            reason = _is_resident(each, preset)
            if reason is not None:
                streamed += streaming(each, preset_sizes(preset))
                rows[version] = {"reason": reason}
                continue
            limits = backend.driver.limits
            plan = make_plan(preset_sizes(preset), limits)
            rows[version] = {
                "us_per_sample": 1e6 * _training_rate(each, preset, n),
                "grid": [plan.parts[1], plan.parts[0]],
                "threads": plan.threads,
            }
            if version == VERSIONS[-1]:
                rows[version]["predicted_us"] = plan.microseconds(limits)
                rows[version]["predicted_by_cause_us"] = plan.estimate(limits)
    return _judge(results, {STREAMS: streamed})


def repeats(backend: CudaBackend, n: int = 2000, times: int = 20) -> Result:
    """The same training again and again: the bits must be the same."""
    images, labels = (backend.put(each) for each in _samples(n))
    order = np.arange(n, dtype=np.int32)
    results: Result = {}
    wrong: list[str] = []
    streamed: list[str] = []
    for preset in PRESETS:
        digests = set()
        start = Network(preset_sizes(preset), seed=1)
        for _ in range(times):
            network = start.copy()
            loaded = backend.load(network)
            backend.train(loaded, images, labels, order, 1e-3)
            backend.store(loaded, network)
            bits = b"".join(each.tobytes() for each in network.weights + network.biases)
            digests.add(hashlib.sha256(bits).hexdigest())
        streamed += streaming(backend, preset_sizes(preset))
        results[preset] = {"runs": times, "different_bits": len(digests) - 1}
        if len(digests) > 1:
            wrong.append(preset)
    return _judge(results, {"runs differ in bits": wrong, STREAMS: streamed})


def committee(backend: CudaBackend, n: int = 16_384, members: Iterable[int] = MEMBERS) -> Result:
    """Samples per second of several networks of net1 at once, beside one."""
    one = 1 / _training_rate(backend, "net1", n)
    streamed = streaming(backend, preset_sizes("net1"))
    results: Result = {"1": {"samples_per_s": one}}
    images, labels = _samples(1000)
    order = np.random.default_rng(1).integers(0, 1000, n).astype(np.int32)
    for count in members:
        networks = [backend.load(Network(preset_sizes("net1"), seed=i)) for i in range(count)]
        arguments = (
            networks,
            [backend.put(images) for _ in networks],
            [backend.put(labels) for _ in networks],
            [order] * count,
            1e-3,
        )
        backend.train_committee(*arguments)
        streamed += streaming(backend, preset_sizes("net1"), count)
        start = time.perf_counter()
        backend.train_committee(*arguments)
        rate = count * n / (time.perf_counter() - start)
        results[str(count)] = {"samples_per_s": rate, "over_one": rate / one}
    return _judge(results, {STREAMS: streamed})


def soak(backend: CudaBackend, seconds: float = 600.0, n: int = 8192) -> Result:
    """Ten minutes of resident training of net4: no exchange gives up, and weights stay finite."""
    images, labels = (backend.put(each) for each in _samples(n))
    network = Network(preset_sizes("net4"), seed=1)
    loaded = backend.load(network)
    streamed = streaming(backend, preset_sizes("net4"))
    order = np.random.default_rng(1).permutation(n).astype(np.int32)
    samples, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        samples += backend.train(loaded, images, labels, order, 1e-4).samples
    backend.store(loaded, network)
    result = {"samples": samples, "seconds": seconds, "description": backend.description}
    wrong = [] if network.is_finite() else ["net4"]
    return _judge(result, {"weights are not finite": wrong, STREAMS: streamed})


# ---- deformation ---------------------------------------------------------------------------


def deformation(backend: CudaBackend, n: int = 60_000, repetitions: int = 7) -> Result:
    """Milliseconds to deform a training set, drawing of its maps included, and to shuffle it."""
    side, parameters = 29, DeformationParameters()
    images, labels = _samples(n)
    resident, on_device = backend.put(images.reshape(n, side, side)), backend.put(labels)
    out, maps = (backend.put(np.zeros(shape, np.float32)) for shape in ((n, side, side), (n, 2, 2)))
    order = backend.put(np.zeros(n, np.int32))
    deformed, shuffled = [], []
    for epoch in range(repetitions + 1):
        start = time.perf_counter()
        deform(resident, on_device, parameters, 1, epoch, backend, out=out, maps=maps)
        middle = time.perf_counter()
        backend.permutation(n, 1, epoch, out=order)
        np.asarray(order[:1])  # waits for it
        deformed.append(middle - start)
        shuffled.append(time.perf_counter() - middle)
    result = {
        "images": n,
        "ms": 1e3 * statistics.median(deformed[1:]),
        "permutation_ms": 1e3 * statistics.median(shuffled[1:]),
        "paper_gpu_ms": 9000.0,
    }
    if result["ms"] > MAX_DEFORMATION:
        raise CheckError(f"deformation takes more than {MAX_DEFORMATION:g} ms", result)
    return result


# ---- a real training -----------------------------------------------------------------------


def training(backend: CudaBackend, epochs: int = 5, seeds: Iterable[int] = (1, 2)) -> Result:
    """Test and validation error of net1 on this device and on the CPU, the same seeds.

    Both see the same deformed images in the same order, but single precision rounds in another
    order, and after an epoch that is as good as another seed. At 5 epochs and an error of
    about 3 %, seeds differ by some tenths of a percentage point; two means of two seeds each
    must agree within 0.75.
    """
    folder = os.environ.get("MLPCORE_DATA")
    # By name, because looking further may take packages that a GPU machine lacks.
    data = dataset.load(folder) if folder else dataset.load(name="digits")
    reasons = backends.available()
    cpu = backends.get([isa for isa in backends.INSTRUCTION_SETS if reasons[isa] is None][-1])
    result: Result = {"data": data.name, "epochs": epochs, "cpu": cpu.name, "runs": []}
    means = {}
    for each in (backend, cpu):
        runs = [_train(each, data, epochs, seed) for seed in seeds]
        result["runs"] += runs
        means[each.name] = statistics.mean(run["test_error_percent"] for run in runs)
    result["means"] = means
    apart = max(means.values()) - min(means.values()) > 0.75
    wrong = [f"{backend.name} and {cpu.name}"] if apart else []
    _, height, width = data.train_images.shape
    streamed = streaming(backend, (height * width, *PRESETS["net1"], data.n_classes))
    return _judge(result, {"test errors differ by more than seeds do": wrong, STREAMS: streamed})


def _train(backend: Backend, data: dataset.Dataset, epochs: int, seed: int) -> Result:
    """One run of net1 at a rate of 1e-3."""
    n, height, width = data.train_images.shape
    network = Network((height * width, *PRESETS["net1"], data.n_classes), seed)
    loaded, labels = backend.load(network), backend.put(data.train_labels)
    images, out = backend.put(data.train_images), backend.put(np.empty_like(data.train_images))
    parameters = DeformationParameters(similar_labels=data.similar_labels)
    start = time.perf_counter()
    for epoch in range(epochs):
        deform(images, labels, parameters, seed, epoch, backend, out=out)
        order = backend.permutation(n, seed, epoch)
        backend.train(loaded, out.reshape(n, height * width), labels, order, 1e-3)
    seconds = time.perf_counter() - start

    def error(pixels: Float32Array, classes: UInt8Array) -> float:
        flat = np.ascontiguousarray(pixels.reshape(len(pixels), -1))
        wrong = backend.count_errors(loaded, backend.put(flat), backend.put(classes))
        return 100 * wrong / len(pixels)

    return {
        "backend": backend.name,
        "seed": seed,
        "seconds_per_epoch": seconds / epochs,
        "validation_error_percent": error(data.train_images, data.train_labels),
        "test_error_percent": error(data.test_images, data.test_labels),
    }
