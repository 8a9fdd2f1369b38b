"""Several networks in the same launches: bits, company, failures."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from mlpcore.backends.cuda import joint as joint_module
from mlpcore.backends.cuda.plan import DeviceLimits
from mlpcore.errors import InputError
from oracle import random_network
from small_trainings import assert_same_weights, problem, trained

pytestmark = needs_emulation

SIZES, RATE = (20, 33, 9, 4), 0.01

#: Half of it is the device of a network that trains alone on all of another.
LIMITS = DeviceLimits(12, 48 << 10, 64 * 64, threads=(32,))


@pytest.fixture
def backend():
    return emulated_backend("resident-2", limits=LIMITS)


@pytest.fixture
def together(monkeypatch):
    """Lets trainings begin only when so many have come; the networks of each launch."""
    counts, begin = [], joint_module.JointLaunches.training
    lead = joint_module.JointLaunches._lead

    def wait_for(n):
        barrier = threading.Barrier(n)

        def training(self):
            context = begin(self)
            context.__enter__()
            barrier.wait(60)

            class Entered:
                def __enter__(self):
                    pass

                def __exit__(self, *error):
                    return context.__exit__(*error)

            return Entered()

        monkeypatch.setattr(joint_module.JointLaunches, "training", training)
        return counts

    def counted(self, requests):
        counts.append(len(requests))
        lead(self, requests)

    monkeypatch.setattr(joint_module.JointLaunches, "_lead", counted)
    return wait_for


def at_once(backend, networks, data):
    """What becomes of networks that train on data of their own, each in a thread."""

    def train(network, samples):
        try:
            return trained(backend, network, *samples, RATE)
        except InputError as error:
            return error

    with ThreadPoolExecutor(len(networks)) as pool:
        return list(pool.map(train, networks, data))


def test_the_bits_are_those_of_networks_alone(backend, together):
    networks = [random_network(SIZES, seed) for seed in range(4)]
    data = [problem(SIZES, n, n) for n in (150, 70, 200, 150)]
    expected = [trained(backend, *each, RATE) for each in ((n, *d) for n, d in zip(networks, data))]
    half = emulated_backend("resident", limits=DeviceLimits(6, 48 << 10, 64 * 64, threads=(32,)))
    assert_same_weights(trained(half, networks[0], *data[0], RATE)[0], expected[0][0])
    counts = together(4)
    for (got, result), (network, wanted) in zip(at_once(backend, networks, data), expected):
        assert_same_weights(got, network)
        assert (result.samples, result.errors) == (wanted.samples, wanted.errors)
        assert result.loss == pytest.approx(wanted.loss, rel=1e-12)  # launches cut the sum anywhere
    assert set(counts) <= {1, 2}
    assert 2 in counts


def test_a_network_that_cannot_train_does_not_stop_the_others(backend, together):
    networks = [random_network(SIZES, seed) for seed in range(2)]
    data = [problem(SIZES, 100, seed) for seed in range(2)]
    expected, _ = trained(backend, networks[1], *data[1], RATE)
    networks[0].weights[0][0, 0] = np.nan
    together(2)
    (_, broken), (got, _) = at_once(backend, networks, data)
    assert np.isnan(broken.loss)
    assert_same_weights(got, expected)


def test_a_launch_that_fails_fails_in_every_thread(backend, together, monkeypatch):
    networks = [random_network(SIZES, seed) for seed in range(2)]
    data = [problem(SIZES, 60, seed) for seed in range(2)]
    kernel = backend.load(networks[0])._kernel

    def failing(*arguments):
        raise InputError("the device failed")

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "launch", failing)
        together(2)
        assert [str(each) for each in at_once(backend, networks, data)] == ["the device failed"] * 2
    together(1)
    trained(backend, networks[0], *data[0], RATE)  # the next one is not disturbed


def test_an_interrupt_while_waiting_leaves_nothing_behind(backend, together, monkeypatch):
    """The others go on, and nobody launches a job that was withdrawn."""
    networks = [random_network(SIZES, seed) for seed in range(2)]
    data = [problem(SIZES, 150, seed) for seed in range(2)]
    expected, _ = trained(backend, networks[1], *data[1], RATE)
    counts, seconds = together(2), joint_module.JointLaunches._seconds_to_wait
    interrupted = threading.local()

    def interrupt(self):
        if getattr(interrupted, "here", False):
            raise KeyboardInterrupt
        return seconds(self)

    monkeypatch.setattr(joint_module.JointLaunches, "_seconds_to_wait", interrupt)

    def train(i):
        interrupted.here = i == 0
        return trained(backend, networks[i], *data[i], RATE)

    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(train, i) for i in range(2))
        assert isinstance(first.exception(60), KeyboardInterrupt)
        assert_same_weights(second.result(60)[0], expected)
    assert len(counts) >= 2
    assert not backend.load(networks[0])._joint._waiting


def test_an_interrupt_of_the_leader_is_its_own(backend, together, monkeypatch):
    networks = [random_network(SIZES, seed) for seed in range(2)]
    data = [problem(SIZES, 100, seed) for seed in range(2)]
    expected = [trained(backend, n, *d, RATE)[0] for n, d in zip(networks, data)]
    together(2)
    synchronize, once = backend.driver.synchronize, [KeyboardInterrupt]

    def interrupted():
        synchronize()
        if once and threading.current_thread() is not threading.main_thread():
            raise once.pop()

    loaded = backend.load(networks[0])
    monkeypatch.setattr(loaded._joint._driver, "synchronize", interrupted)
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(trained, backend, network, *samples, RATE)
            for network, samples in zip(networks, data)
        ]
        errors = [future.exception(60) for future in futures]
    assert sorted(type(each).__name__ for each in errors) == ["KeyboardInterrupt", "NoneType"]
    for future, error, wanted in zip(futures, errors, expected):
        if error is None:
            assert_same_weights(future.result()[0], wanted)


def test_a_network_too_large_for_its_part_is_refused():
    backend = emulated_backend("resident-4")
    with pytest.raises(InputError, match=r"^schedule resident-4: layers 841, 1000, 500, 10 need"):
        backend.load(random_network((841, 1000, 500, 10), 1))
    backend = emulated_backend("resident-8")
    with pytest.raises(InputError, match=r"^schedule resident-8: the device has 6 multiproc"):
        backend.load(random_network(SIZES, 1))
