"""Operations of the CPU backends: right arguments, and all that allocate or start threads in C."""

from functools import partial

import numpy as np

from mlpcore import backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.data.pixels import PixelSpec

SIZES = 300, 600, 300, 10


def right_calls(sizes, n, seed):
    """Operations of every CPU backend, with arguments that fit a network of these sizes."""
    rng = np.random.default_rng(seed)

    def floats(*shape):
        return rng.uniform(-1, 1, shape).astype(np.float32)

    images, labels = floats(n, sizes[0]), rng.integers(0, sizes[-1], n).astype(np.uint8)
    order, weights = rng.permutation(n).astype(np.int32), abs(floats(n))
    pictures, maps = floats(n, 5, 4), np.eye(2, dtype=np.float32) + floats(n, 2, 2) / 5
    taps, place = np.full((1, 21), 1 / 21, np.float32), {"seed": 7, "epoch": 3}
    affine, smooth = {"images": pictures, "affine": maps}, {"taps": taps, "alpha": 3.0}
    deformed = affine | smooth | place | {"background": -1.0}
    samples = {"images": images, "labels": labels}
    steps = {**samples, "order": order, "learning_rate": 1e-5, "target": 0.5}
    at = {"height": 7, "width": 31, "indices": rng.integers(0, 300, n)}
    return {
        "train": steps,
        "train ": steps | {"sample_weight": weights},
        "predict": {"images": images},
        "count_errors": samples,
        "affine_maps": {"labels": labels, "angles": np.full(256, 0.2), "scale": 0.1} | place,
        "fields": smooth | place | at,
        "deform_by": affine | {"background": -1.0, "displacement": floats(n, 2, 5, 4)},
        "deform": deformed | {"first": 95},
        "deform ": deformed | {"out": np.zeros_like(pictures)},
    }


def trained(backend, arguments, network):
    backend.train(network, **arguments)
    return network.weights


def stepped(backend, samples, network):
    stepper = backend.stepper(network)
    stepper.train(**samples, learning_rate=1e-3)
    return stepper.network.weights


def selected(backend, arguments, _):
    images, out = arguments["images"][:, None], np.zeros((130, 1, 5, 4), np.float32)
    places = {"indices": np.arange(130)[::-1], "images": images, "out": out}
    backend.deform_selected(**{k: arguments[k] for k in arguments if k != "first"} | places)
    return out


def operations():
    """The operations, by name: functions of a network, which they may change."""
    backend, calls = backends.get("cpu", 3), right_calls(SIZES, 130, 0)
    samples, pictures = calls["count_errors"], np.zeros((130, 4, 4), np.uint8)
    images = samples["images"]
    np.maximum(images - 0.5, 0, out=images)  # in all calls: three of four inputs are not active
    for schedule in SCHEDULES:
        engine = SimdBackend(backend.name, 3, schedule, packed_from=0)
        yield f"train {schedule}", partial(trained, engine, calls["train"])
    yield "train weighted", partial(trained, backend, calls["train "])
    yield "stepper", partial(stepped, backend, samples)
    yield "predict", partial(backend.predict, images=images)
    yield "predict many", partial(backend.predict, images=np.tile(images, (9, 1)))
    counted = partial(backend.count_errors, **samples, poll=lambda: None)
    yield "count errors", lambda network: [counted(network)]
    for name in ("deform_by", "deform", "fields"):
        yield name, lambda _, name=name: getattr(backend, name)(**calls[name])
    yield "to inputs", lambda _: backend.to_inputs(pictures, PixelSpec((5, 5), (4, 4)))
    yield "deform selected", partial(selected, backend, calls["deform"])
