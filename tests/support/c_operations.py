"""Every operation that allocates memory or starts threads in C."""

from functools import partial

import numpy as np

from mlpcore import backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.data.pixels import PixelSpec

N, SIZES = 70, (300, 600, 300, 10)
RNG = np.random.default_rng(0)
IMAGES = np.maximum(RNG.uniform(-3, 1, (N, SIZES[0])), 0).astype(np.float32)
LABELS = RNG.integers(0, SIZES[-1], N).astype(np.uint8)
ORDER = RNG.permutation(N).astype(np.int32)
WEIGHTS = (np.arange(N) % 3).astype(np.float32)
PICTURES = RNG.uniform(-1, 1, (130, 5, 4)).astype(np.float32)
BYTES = RNG.integers(0, 256, (130, 4, 4)).astype(np.uint8)
MAPS = np.tile(np.eye(2, dtype=np.float32), (130, 1, 1))
TAPS = np.full((1, 21), 1 / 21, np.float32)
MANY = np.tile(IMAGES, (15, 1))
FIELD = RNG.uniform(-1, 1, (130, 2, 5, 4)).astype(np.float32)


def trained(backend, network, **options):
    backend.train(network, IMAGES, LABELS, ORDER, 1e-3, **options)
    return network.weights


def stepped(backend, network):
    stepper = backend.stepper(network)
    stepper.train(IMAGES, LABELS, 1e-3)
    return stepper.network.weights


def selected(backend):
    out = np.zeros((130, 1, 5, 4), np.float32)
    indices = np.arange(130)[::-1]
    backend.deform_selected(PICTURES[:, None], MAPS, TAPS, 3.0, 0, 0, indices, 0.0, out)
    return out


def operations():
    """The operations, by name: functions of a network, which they may change."""
    backend = backends.get("cpu", 3)
    for schedule in SCHEDULES:
        trainer = SimdBackend(backend.name, 3, schedule, packed_from=0)
        yield f"train {schedule}", partial(trained, trainer)
    yield "train weighted", partial(trained, backend, sample_weight=WEIGHTS)
    yield "stepper", partial(stepped, backend)
    yield "predict", lambda network: backend.predict(network, IMAGES)
    yield "predict many", lambda network: backend.predict(network, MANY)
    yield (
        "count errors",
        lambda network: [backend.count_errors(network, IMAGES, LABELS, lambda: None)],
    )
    yield "deform by", lambda _: backend.deform_by(PICTURES, MAPS, FIELD)
    yield "deform", lambda _: backend.deform(PICTURES, MAPS, TAPS, 3.0, 0, 0)
    yield "to inputs", lambda _: backend.to_inputs(BYTES, PixelSpec((5, 5), (4, 4)))
    yield "deform selected", lambda _: selected(backend)
    yield "fields", lambda _: backend.fields(5, 4, TAPS, 3.0, 0, 0, np.arange(130))
