"""Arrays that others change while C reads them, that overlap, or that are not aligned."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from mlpcore import InputError, Network, backends
from mlpcore.backends.simd import SCHEDULES
from mlpcore.deformation import DeformationParameters, deform_selected
from oracle import bits, misaligned, trained, training_set, uniform


@pytest.mark.parametrize("name, schedule", [("reference", None), *(("cpu", s) for s in SCHEDULES)])
def test_progress_may_write_to_the_arrays(name, schedule):
    """C has copies of its own, or else an image far outside the array would end the process."""
    results, sizes = [], (40, 300, 10)
    network = Network(sizes, 1, "relu", "cross-entropy", "he")
    images, *_ = training_set(sizes, 3000, zeros=0.5, low=0)

    def spoil(result):
        order[:], labels[:], weights[:] = 2**31 - 1, 255, np.nan

    for progress in (None, spoil):
        (_, labels, order), weights = training_set(sizes, 3000), np.ones(3000, np.float32)
        data = images, labels, order, 1e-3
        engine = backends.get(name, 2, schedule)
        got, result = trained(engine, network, *data, progress=progress, sample_weight=weights)
        results.append((result, bits(got)))
    assert order[0] == 2**31 - 1
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", [np.array, csr_matrix])
def test_a_stepper_has_copies_of_what_points_into_memory(cpu_name, kind):
    """C would write where indices or labels point that changed after they had been checked."""

    class Rates(list):
        """Learning rates whose reading spoils the other arguments."""

        def __iter__(self):
            labels[:], weights[:] = 255, np.nan
            if kind is csr_matrix:
                images.indptr[1:], images.indices[:] = 2**30, 2**30
            return super().__iter__()

    results = []
    for rates in ([0.1, 0.1], Rates([0.1, 0.1])):
        images, labels, _ = training_set((20, 30, 3), 9, zeros=0.5)
        images, weights = kind(images), np.ones(9, np.float32)
        stepper = backends.get(cpu_name).stepper(Network((20, 30, 3), 1))
        start = stepper.network  # which no later step changes
        result = stepper.train(images, labels, rates, sample_weight=weights)
        results.append((result, bits(stepper.network)))
        assert bits(start) == bits(Network((20, 30, 3), 1))
    assert labels[0] == 255
    assert results[0] == results[1]


def test_images_in_any_place(cpu_name):
    """Not aligned, between bytes of records, where the result goes, or one image before that."""
    backend, images = backends.get(cpu_name), uniform(1, 7, 6, 5)
    maps, taps = np.eye(2, dtype="f4") + uniform(2, 7, 2, 2) / 10, np.full((1, 21), 1 / 21, "f4")
    chosen = np.arange(7)[::-1], np.zeros(7, np.uint8), DeformationParameters(), 1, 2, backend
    records = np.zeros(images.shape, np.dtype([("pixel", "f4"), ("tag", "u1")]))
    records["pixel"] = images
    for deform in (
        lambda images, out=None: backend.deform(images, maps, taps, 3.0, 0, 0, out=out),
        lambda images, out=None: deform_selected(images, *chosen, out=out),
    ):
        expected, memory = deform(images), np.zeros((8, 6, 5), np.float32)
        for moved in (misaligned(images), records["pixel"]):
            assert np.array_equal(deform(moved), expected)
            with pytest.raises(InputError, match=r"^out: expected .*aligned"):
                deform(images, moved)
        for out in (memory[:7], memory[1:]):
            memory[:7] = images
            deform(memory[:7], out)
            assert np.array_equal(out, expected)
