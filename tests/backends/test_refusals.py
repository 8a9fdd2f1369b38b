"""Every backend refuses arrays and values that it cannot use, before anything is changed."""

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.backends import simd
from mlpcore.backends.arguments import MAX_SIDE, check_array
from mlpcore.backends.simd import SimdBackend
from mlpcore.cpu import available_cores
from mlpcore.deformation import DeformationParameters, deform_selected
from mlpcore.errors import InputError
from mlpcore.network import Network
from oracle import random_network, uniform

AT_MOST_CORES = simd._at_most_cores  # before the tests lift it

CPU_BACKENDS = [
    name for name, reason in backends.available().items() if reason is None and name != "cuda"
]


def test_what_is_drawn_goes_where_it_fits(backend):
    labels, angles = np.zeros(5, np.uint8), np.zeros(256)
    for out in (np.zeros(4, np.int32), np.zeros(5, np.float32)):
        with pytest.raises(InputError, match="out"):
            backend.permutation(5, 0, 0, out=backend.put(out))
    with pytest.raises(InputError, match="out"):
        backend.affine_maps(labels, angles, 0.1, 0, 0, out=backend.put(np.zeros((4, 2, 2), "f4")))
    with pytest.raises(InputError, match="labels"):
        backend.affine_maps(np.zeros(5, np.int64), angles, 0.1, 0, 0)
    with pytest.raises(InputError, match="angles"):
        backend.affine_maps(labels, angles[:10], 0.1, 0, 0)


def test_bad_arrays_are_refused_before_anything_runs(backend):
    network = Network((4, 3, 2), seed=1)
    before = network.copy()
    loaded = backend.load(network)
    images = np.zeros((5, 4), np.float32)
    labels, order = np.zeros(5, np.uint8), np.arange(5, dtype=np.int32)
    bad = [
        (images[:, :3], labels, order),
        (images.astype(np.float64), labels, order),
        (images, labels[:4], order),
        (images, labels, order + 1),
        (images, labels, order - 1),
    ]
    if not backend.name.startswith("cuda"):  # where labels are not looked at again
        bad.append((images, labels + np.uint8(2), order))
    for x, t, o in bad:
        with pytest.raises(InputError, match=r"images|labels|order"):
            backend.train(loaded, backend.put(x), backend.put(t), o, 0.1)
    with pytest.raises(InputError, match="layer 2"):
        backend.forward(loaded, 2, images)
    with pytest.raises(InputError, match="inputs"):
        backend.forward(loaded, 1, images)
    backend.store(loaded, network)
    assert all(np.array_equal(a, b) for a, b in zip(network.weights, before.weights))


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_labels_to_count_errors_by(name):
    backend, network = backends.get(name), random_network((4, 3), 1)
    images, labels = uniform(1, 6, 4), np.zeros(6, np.uint8)
    bad = [labels[:, None], labels[:5], labels[0], labels.astype(np.int32)]
    for each in bad:
        with pytest.raises(InputError, match=r"labels: u?int.*expected uint8 of shape \(6\)"):
            backend.count_errors(network, images, each)


@pytest.mark.parametrize("name", [name for name in CPU_BACKENDS if name != "reference"])
def test_no_network(name):
    backend, images = backends.get(name), uniform(1, 2, 4)
    labels, order = np.zeros(2, np.uint8), np.arange(2, dtype=np.int32)
    calls = [
        lambda: backend.train(None, images, labels, order, 0.1),
        lambda: backend.forward(None, 0, images),
        lambda: backend.backward(None, 0, images, images),
        lambda: backend.update(None, 0, images, images, 0.1),
        lambda: backend.predict(None, images),
    ]
    for call in calls:
        with pytest.raises((TypeError, AttributeError)):
            call()


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_images_that_cannot_be_drawn(name):
    """A word of 32 bits would begin anew."""
    backend, images = backends.get(name), np.full((2, 5, 5), -1, np.float32)
    maps, taps = np.tile(np.eye(2, dtype=np.float32), (2, 1, 1)), np.full(21, 1 / 21, np.float32)
    for epoch, first in [(0, 2**31 - 1), (0, -1), (2**32, 0), (-1, 0), (0, 1.0)]:
        with pytest.raises(InputError, match=r"^(first|epoch) .*: expected a whole number"):
            backend.deform(images, maps, taps, 1.0, 0, epoch, first)
    assert backend.deform(images, maps, taps, 1.0, 0, 2**32 - 1, 2**31 - 2).shape == images.shape


@pytest.mark.parametrize("name", [name for name in CPU_BACKENDS if name != "reference"])
def test_values_that_no_operation_can_use(name):
    """Each is refused by name, before anything is changed."""
    backend, network = backends.get(name), Network((4, 3, 2), seed=1)
    before, images = network.copy(), uniform(1, 5, 4)
    labels, order = np.zeros(5, np.uint8), np.arange(5, dtype=np.int32)
    maps, taps = np.tile(np.eye(2, dtype=np.float32), (1, 1, 1)), np.full(21, 1 / 21, np.float32)
    wide = np.zeros((1, 1, MAX_SIDE + 1), np.float32)
    calls = {
        "learning_rate nan": lambda: backend.train(network, images, labels, order, np.nan),
        "learning_rate 0": lambda: backend.train(network, images, labels, order, 0),
        "learning_rate 'a'": lambda: backend.train(network, images, labels, order, "a"),
        "target 1.7159": lambda: backend.train(network, images, labels, order, 0.1, target=1.7159),
        "target 0": lambda: backend.train(network, images, labels, order, 0.1, target=0),
        "learning rates of 1 layers": lambda: backend.train(network, images, labels, order, [0.1]),
        "learning_rate -1": lambda: backend.train(network, images, labels, order, (0.1, -1)),
        "learning_rate inf": lambda: backend.update(network, 0, images, images[:, :3], np.inf),
        "order": lambda: backend.train(network, images[:0], labels[:0], order, 0.1),
        "layer 0.5": lambda: backend.forward(network, 0.5, images),
        "epoch -1": lambda: backend.noise(0, -1, 0, 5, 5),
        "angles: expected finite": lambda: backend.affine_maps(
            labels, np.full(256, np.nan), 0, 0, 0
        ),
        "grid -1": lambda: backend.noise(0, 0, -1, 5, 5),
        "seed -1": lambda: backend.noise(-1, 0, 0, 5, 5),
        "images of 1 x 2049": lambda: backend.noise(0, 0, 0, 1, 2049),
        "images of 1 x 2049:": lambda: backend.deform(wide, maps, taps, 1.0, 0, 0),
        "images of 1 x 2049: e": lambda: backend.deform_by(wide, maps, np.stack([wide, wide], 1)),
    }
    for value, call in calls.items():
        with pytest.raises(InputError, match=f"^{value}"):
            call()
    assert all(np.array_equal(a, b) for a, b in zip(network.weights, before.weights))


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_a_result_goes_into_any_array_that_can_be_written(name, tmp_path):
    backend, images = backends.get(name), uniform(1, 2, 5, 5)
    maps, taps = np.tile(np.eye(2, dtype=np.float32), (2, 1, 1)), np.full(21, 1 / 21, np.float32)
    expected = backend.deform(images, maps, taps, 1.0, 0, 0)
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=images.shape)
    assert backend.deform(images, maps, taps, 1.0, 0, 0, out=out) is out
    assert np.array_equal(out, expected)
    fixed = np.zeros_like(images)
    fixed.flags.writeable = False
    for bad in (fixed, np.zeros((2, 5, 10), np.float32)[:, :, ::2]):
        with pytest.raises(InputError, match=r"^out: expected a C-contiguous array"):
            backend.deform(images, maps, taps, 1.0, 0, 0, out=bad)


def test_an_array_too_long_for_the_kernels():
    long = np.broadcast_to(np.float32(0), (2**31, 1))
    with pytest.raises(InputError, match=r"^x: shape \(2147483648, 1\), expected at most"):
        check_array("x", long, (None, 1))


@pytest.mark.parametrize("value", [0.5, "1", 2**32, -1, np.nan, None])
def test_epochs_that_draw_nothing(backend, value):
    labels, angles = backend.put(np.zeros(5, np.uint8)), np.zeros(256)
    with pytest.raises(InputError, match=r"^epoch .*: expected a whole number"):
        backend.permutation(5, 0, value)
    with pytest.raises(InputError, match=r"^epoch .*: expected a whole number"):
        backend.affine_maps(labels, angles, 0.1, 0, value)
    with pytest.raises(InputError, match=r"^epoch .*: expected a whole number"):
        backend.noise(0, value, 0, 5, 5)


def test_numbers_that_draw_nothing(backend):
    labels, angles = backend.put(np.zeros(5, np.uint8)), np.zeros(256)
    for n in (-1, 2**31 + 1, 2.0, "5"):
        with pytest.raises(InputError, match=r"^n .*: expected a whole number"):
            backend.permutation(n, 0, 0)
    for scale in (np.nan, np.inf, 1, -0.1, "0.1"):
        with pytest.raises(InputError, match=r"^scale .*: expected"):
            backend.affine_maps(labels, angles, scale, 0, 0)
    with pytest.raises(InputError, match=r"^first -1: expected"):
        backend.affine_maps(labels, angles, 0.1, 0, 0, first=-1)


def test_displacements_that_no_backend_can_compute(backend):
    images, maps = backend.put(np.zeros((2, 5, 5), np.float32)), np.zeros((2, 2, 2), np.float32)
    taps, noise = np.full(21, 1 / 21, np.float32), np.zeros((2, 30, 30), np.float32)
    for alpha in (np.nan, np.inf, -1e300, 2e6, "1"):
        with pytest.raises(InputError, match=r"^alpha .*: expected a number"):
            backend.deform(images, backend.put(maps), taps, alpha, 0, 0)
        with pytest.raises(InputError, match=r"^alpha .*: expected a number"):
            backend.displacement_field(noise, taps, alpha)


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_maps_and_displacements_that_are_not_finite(name):
    backend, images = backends.get(name), np.zeros((2, 5, 5), np.float32)
    maps, taps = np.zeros((2, 2, 2), np.float32), np.full(21, 1 / 21, np.float32)
    field, bad = np.zeros((2, 2, 5, 5), np.float32), maps + np.float32(np.nan)
    with pytest.raises(InputError, match=r"^affine: expected finite numbers"):
        backend.deform(images, bad, taps, 1.0, 0, 0)
    with pytest.raises(InputError, match=r"^affine: expected finite numbers"):
        backend.deform_by(images, bad, field)
    with pytest.raises(InputError, match=r"^displacement: expected finite numbers"):
        backend.deform_by(images, maps, field + np.float32(np.inf))


def test_nothing_of_a_backend_can_be_changed(backend):
    """C relies on the number of threads, the block and the instruction set."""
    values = {"name": "nothing", "threads": -5, "schedule": "later"}
    if isinstance(backend, SimdBackend):
        values |= {"block": 100_000, "packed_from": -1}
    for name, value in values.items():
        before = getattr(backend, name)
        with pytest.raises(AttributeError):
            setattr(backend, name, value)
        assert getattr(backend, name) == before


def test_no_more_threads_than_cores(monkeypatch):
    """More would wait for a core at every barrier."""
    monkeypatch.setattr(simd, "_at_most_cores", AT_MOST_CORES)
    cores = available_cores()
    for threads in (1, cores, cores + 1, 1024):
        backend = backends.get("scalar", threads)
        assert backend.threads == min(threads, cores)
        assert f" {backend.threads} thread" in backend.description


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_numbers_that_c_would_round_or_cut(name):
    """Both kinds of CPU backends refuse the same calls."""
    backend, network, n = backends.get(name), Network((4, 3), 1), 2
    images, maps = np.zeros((n, 5, 5), np.float32), np.zeros((n, 2, 2), np.float32)
    taps = np.full(21, 1 / 21, np.float32)
    inputs = uniform(1, n, 4)
    calls = {
        "taps: expected": lambda: backend.deform(images, maps, taps + np.nan, 1.0, 0, 0),
        "background None": lambda: backend.deform(images, maps, taps, 1.0, 0, 0, background=None),
        "learning_rate -3": lambda: backend.update(network, 0, inputs, inputs[:, :3], -3),
    }
    for value, call in calls.items():
        with pytest.raises(InputError, match=f"^{value}"):
            call()


@pytest.mark.parametrize("name", CPU_BACKENDS)
@pytest.mark.parametrize("indices", [[0.5, 1.0], [-1, 0], [0, 2**31], [0], ["a", "b"]])
def test_numbers_of_images_that_are_none(name, indices):
    images, labels = np.zeros((2, 5, 5), np.float32), np.zeros(2, np.uint8)
    with pytest.raises(InputError, match=r"^indices: "):
        deform_selected(images, indices, labels, DeformationParameters(), 0, 0, backends.get(name))
