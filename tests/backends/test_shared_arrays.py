"""Arrays that others change while C reads them, that overlap, or that are not aligned."""

import subprocess
import sys

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.backends.simd import SimdBackend
from mlpcore.deformation import DeformationParameters, deform_selected
from mlpcore.errors import InputError
from mlpcore.network import Network
from oracle import bits, uniform

CPU_BACKENDS = [
    name for name, reason in backends.available().items() if reason is None and name != "cuda"
]


def misaligned(array):
    """A copy that starts one byte after a multiple of four."""
    memory = np.zeros(array.nbytes + 8, np.uint8)
    start = -memory.ctypes.data % 4 + 1
    result = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    assert not result.flags.aligned
    return result


def drawn(n, *shape):
    """Images, maps and taps of a deformation of n images."""
    rng = np.random.default_rng(2)
    maps = np.eye(2, dtype=np.float32) + rng.uniform(-0.1, 0.1, (n, 2, 2)).astype(np.float32)
    return uniform(1, n, *shape), maps, np.full(21, 1 / 21, np.float32)


def test_progress_may_write_to_the_arrays():
    """In a process of its own: an image far outside the array ended it."""
    code = """
import numpy as np
from mlpcore import Network, backends
n, rng = 3000, np.random.default_rng(0)
images = np.maximum(rng.uniform(-1, 1, (n, 40)), 0).astype(np.float32)

def spoil(result):
    order[:], labels[:], weights[:] = 2**31 - 1, 255, np.nan

for name in (name for name in backends.INSTRUCTION_SETS if backends.available()[name] is None):
    for schedule in backends.SCHEDULES:
        results = []
        for progress in (None, spoil):
            labels, weights = (np.arange(n) % 10).astype(np.uint8), np.ones(n, np.float32)
            order = np.arange(n, dtype=np.int32)[::-1].copy()
            network = Network((40, 300, 10), 1, "relu", "cross-entropy", "he")
            result = backends.get(name, 2, schedule).train(
                network, images, labels, order, 1e-3, progress, sample_weight=weights
            )
            results.append((result, [array.tobytes() for array in network.weights]))
        assert order[0] == 2**31 - 1
        assert results[0] == results[1]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_progress_may_write_to_the_arrays_of_the_reference():
    backend, network = backends.get("reference"), Network((4, 3), 1)
    images, labels, order = uniform(1, 5, 4), np.zeros(5, np.uint8), np.arange(5, dtype=np.int32)

    def spoil(result):
        order[:], labels[:] = 2**31 - 1, 255

    assert backend.train(network, images, labels, order, 0.1, spoil).samples == 5


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_arrays_that_are_not_aligned(name):
    backend = backends.get(name)
    images, labels, order = uniform(1, 9, 6), np.zeros(9, np.uint8), np.arange(9, dtype=np.int32)
    networks = [Network((6, 5, 3), 1) for _ in range(2)]
    weights = uniform(2, 9) + 2
    for network, move in zip(networks, (np.copy, misaligned)):
        arguments = move(images), labels, move(order), 0.1
        backend.train(network, *arguments, sample_weight=move(weights))
    assert bits(networks[0]) == bits(networks[1])
    outputs = backend.predict(networks[0], images)
    assert np.array_equal(backend.predict(networks[0], misaligned(images)), outputs)
    pictures, maps, taps = drawn(3, 5, 4)
    expected = backend.deform(pictures, maps, taps, 3.0, 0, 0)
    moved = (misaligned(array) for array in (pictures, maps, taps))
    assert np.array_equal(backend.deform(*moved, 3.0, 0, 0), expected)
    with pytest.raises(InputError, match=r"^out: expected a C-contiguous array that is aligned"):
        backend.deform(pictures, maps, taps, 3.0, 0, 0, out=misaligned(pictures))


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_a_deformation_in_place(name):
    backend, (images, maps, taps) = backends.get(name), drawn(7, 6, 5)
    expected = backend.deform(images, maps, taps, 3.0, 0, 0)
    memory = np.zeros((8, 6, 5), np.float32)
    for start in (0, 1):  # on the images themselves, and one further
        memory[:7] = images
        out = memory[start : start + 7]
        assert backend.deform(memory[:7], maps, taps, 3.0, 0, 0, out=out) is out
        assert np.array_equal(out, expected)
    together = np.zeros(7 * 6 * 5, np.float32)
    together[:28] = maps.ravel()
    out = together.reshape(7, 6, 5)
    backend.deform(images, together[:28].reshape(7, 2, 2), taps, 3.0, 0, 0, out=out)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("name", CPU_BACKENDS)
def test_selected_images_in_place_and_between_bytes(name):
    """Strides that are no multiple of a float's size are those of a field of a record."""
    parameters, backend = DeformationParameters(), backends.get(name)
    images, labels, indices = uniform(3, 4, 6, 5), np.zeros(4, np.uint8), np.array([7, 3, 1, 2])
    arguments = indices, labels, parameters, 1, 2, backend
    expected = deform_selected(images, *arguments)
    records = np.zeros(images.shape, np.dtype([("pixel", "f4"), ("tag", "u1")]))
    records["pixel"] = images
    assert np.array_equal(deform_selected(records["pixel"], *arguments), expected)
    memory = np.zeros((5, 6, 5), np.float32)
    memory[:4] = images
    deform_selected(memory[:4], *arguments, out=memory[1:])
    assert np.array_equal(memory[1:], expected)
    if name in backends.INSTRUCTION_SETS:
        with pytest.raises(InputError, match=r"^out: expected an aligned array"):
            deform_selected(images, *arguments, out=records["pixel"])


def test_a_device_refuses_to_deform_in_place(backend):
    if isinstance(backend, SimdBackend):
        pytest.skip("a CPU backend copies the images")
    images, maps, taps = (backend.put(array) for array in drawn(3, 5, 4))
    with pytest.raises(InputError, match=r"^out: expected memory that the images do not use"):
        backend.deform(images, maps, taps, 3.0, 0, 0, out=images)
