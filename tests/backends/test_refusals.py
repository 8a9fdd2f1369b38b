"""Every backend refuses arrays and values that it cannot use, before anything is changed."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from emulated import SIMD, get_backend
from mlpcore import InputError, Network, backends
from mlpcore.backends import simd
from mlpcore.backends.arguments import MAX_SIDE, check_array
from mlpcore.backends.simd import SimdBackend
from mlpcore.cpu import available_cores
from mlpcore.data.pixels import DIGITS_PIXELS, MNIST_PIXELS
from mlpcore.deformation import DeformationParameters, deform_selected
from mlpcore.network.architecture import parse_hidden_layers
from oracle import bits, uniform

AT_MOST_CORES = simd._at_most_cores  # before the tests lift it

X = uniform(1, 5, 4)
LABELS, ORDER = np.zeros(5, np.uint8), np.arange(5, dtype=np.int32)
IMAGES, MAPS = np.zeros((5, 6, 6), np.float32), np.tile(np.eye(2, dtype=np.float32), (5, 1, 1))
TAPS, ANGLES = np.full((1, 21), 1 / 21, np.float32), np.zeros(256)
FIELD = np.zeros((5, 2, 6, 6), np.float32)
WIDE, LONG = np.zeros((5, 1, MAX_SIDE + 1), np.float32), np.broadcast_to(np.float32(0), (2**31, 1))


def train(images=X, labels=LABELS, order=ORDER, rate=0.1, **options):
    return lambda b, net: b.train(net, b.put(images), b.put(labels), order, rate, **options)


def deform(images=IMAGES, maps=MAPS, taps=TAPS, alpha=1.0, first=0, **options):
    return lambda b, net: b.deform(b.put(images), b.put(maps), taps, alpha, 0, 0, first, **options)


def deform_in_place(b, net):
    images = b.put(IMAGES)
    b.deform(images, b.put(MAPS), TAPS, 1.0, 0, 0, out=images)


def fields(taps=TAPS, seed=0, width=6):
    return lambda b, net: b.fields(6, width, taps, 1.0, seed, 0, [0])


def maps(labels=LABELS, angles=ANGLES, scale=0.1):
    return lambda b, net: b.affine_maps(b.put(labels), angles, scale, 0, 0, 0)


def selected(indices):
    chosen = IMAGES[:2], indices, LABELS[:2], DeformationParameters(), 0, 0
    return lambda b, net: deform_selected(*chosen, b)


def steps(images=X, labels=LABELS):
    return lambda b, net: b.stepper(net).train(images, labels, 0.1)


#: More weights than memory holds, and so many layers that the line has to be cut, are among them.
BAD_SIZES = [(), 5, (5, 0), (5, -1, 2), (5, 1.5), (5, True), (2, 10**7)]
BAD_SIZES += [(841, 10**6, 10**6, 10), (*[1] * 10**5, 0)]

BAD_TEXTS = ["", "0", "-5", "a,b", "100,,5", "1.5", "net6", "9999999", "1" * 5000, "\u0661\u0660"]
BAD_INDICES = [0.5, 1.0], [-1, 0], [0, 2**31], [0], ["a", "b"]

#: Calls with a backend and a loaded network of 4-3-2, and how the message begins.
REFUSED = [
    (train(X[:, :3]), r"images: float32 of shape \(5, 3\), expected float32 of shape \(any, 4\)"),
    (train(labels=LABELS[:4]), r"labels: uint8 of shape \(4,\), expected uint8 of shape \(5\)"),
    (train(labels=LABELS + np.uint8(2)), "labels: from 2 to 2, expected 0 to 1"),
    (train(order=ORDER.astype(np.int64)), "order: int64"),
    (train(order=ORDER + 1), "order: from 1 to 5, expected 0 to 4"),
    (train(X[:0], LABELS[:0]), "order: from 0 to 4, expected"),
    (train(rate=[0.1]), "learning rates of 1 layers, expected one or 2"),
    (train(target=1.7159), "target 1.7159: expected"),
    (lambda b, net: b.count_errors(net, X, LABELS[:, None]), "labels"),
    (maps(LABELS.astype(np.int64)), "labels: int64"),
    (maps(scale=1), "scale 1: expected 0 or more"),
    (fields(seed=-1), "seed -1"),
    (fields(TAPS[:0]), "number of pixels of a cell 0: expected"),
    (fields(width=MAX_SIDE + 1), f"images of 6 x {MAX_SIDE + 1}"),
    (deform(WIDE), "images of 1 x 2049"),
    (deform(alpha=2e6), "alpha 2e.06: expected a number from"),
    (deform(first=2**31 - 1), "first 2147483647"),
    (deform(pixels=DIGITS_PIXELS), "PixelSpec.*: expected bytes, without a margin"),
    (deform(pixels=MNIST_PIXELS), r"images: float32 of .*, expected uint8 of shape \(any, 28, 28"),
    (lambda b, net: b.to_inputs(IMAGES, MNIST_PIXELS), "images: float32 of .*, expected uint8"),
    (lambda b, net: b.deform_by(IMAGES, MAPS[:4], FIELD), "affine: float32 of shape"),
    (lambda b, net: b.deform_by(IMAGES, MAPS, FIELD[:4]), "displacement: float32 of shape"),
]


#: What a device would have to copy back to look at, or does not take.
REFUSED_ON_A_CPU = [
    (train(sample_weight=np.float32([1, 1, -2, 1, 1])), "sample_weight -2 of sample 2: expected"),
    (train(sample_weight=np.float32([1, 1, 1, np.inf, 1])), "sample_weight inf of sample 3: exp"),
    (train(sample_weight=np.float32([1, 1, 1])), r"sample_weight: .*\(3,\), expected .* \(5\)$"),
    (steps(labels=LABELS + np.uint8(2)), "labels: from 2 to 2, expected 0 to 1"),
    (train(weight_decay=-1.0), "weight_decay -1: expected 0 or more"),
    (maps(angles=ANGLES * np.nan), "angles: expected finite numbers"),
    (deform(maps=MAPS * np.float32(np.nan)), "affine: expected finite numbers"),
    (deform(taps=TAPS * np.float32(np.nan)), "taps: expected numbers from -1 to 1"),
    (lambda b, net: b.deform_by(IMAGES, MAPS, FIELD + np.float32(np.inf)), "displacement: exp"),
    *((selected(indices), "indices: ") for indices in BAD_INDICES),
    (deform(out=np.zeros((5, 6, 12), np.float32)[:, :, ::2]), "out: expected a C-contiguous array"),
]


#: Choices of a backend, and networks.
REFUSED_CHOICES = [
    (lambda: backends.get("sse9"), "backend 'sse9': expected auto, cpu, reference, scalar"),
    (lambda: backends.get("reference", -5), "threads -5: .* from 1 to 1,024"),
    (lambda: backends.get("scalar", 1, "later"), ".*'later': expected sparse, packed or deferred"),
    (lambda: backends.get("reference", 1, "deferred"), ".*'deferred': the reference backend has"),
    (lambda: SimdBackend("scalar", 1, "deferred", 0), "block 0"),
    (lambda: SimdBackend("scalar", 1, "deferred", 1025), "block 1025"),
    (lambda: SimdBackend("scalar", 1, packed_from=-1), "packed_from -1: expected"),
    (lambda: get_backend("cuda-emulated", None, "deferred"), ".*: expected resident or streaming"),
    (lambda: check_array("x", LONG, (None, 1)), r"x: shape \(2147483648, 1\), expected at most"),
    (lambda: Network((4, 2), activation="step"), "activation 'step': expected tanh"),
    (lambda: Network((4, 2), loss="hinge"), "loss 'hinge': expected squared"),
    *((lambda sizes=sizes: Network(sizes), "layer sizes|size 0: expected") for sizes in BAD_SIZES),
    *((lambda text=text: parse_hidden_layers(text), "architecture") for text in BAD_TEXTS),
]


FULL_ROW = csr_matrix(np.ones((1, 4), np.float32))


def sparse(change=id, rows=FULL_ROW):
    """Calls with a matrix, whose arrays change once SciPy has found that its indices ascend."""
    rows = rows.copy()
    assert rows.nnz < 4 or rows.format != "csr" or rows.has_canonical_format
    change(rows)
    return steps(rows, LABELS[:1]), lambda b, net: b.stepper(net).predict(rows)


#: Rows of matrices that are none, of which C would write beyond its arrays.
BROKEN_ROWS = [
    *sparse(lambda rows: rows.indptr.__setitem__(1, 10**6)),
    *sparse(lambda rows: rows.indptr.__setitem__(0, 1)),
    *sparse(lambda rows: rows.indices.__setitem__(-1, 4)),
    *sparse(lambda rows: rows.indices.__setitem__(0, -1)),
    *sparse(lambda rows: rows.indices.fill(3)),
    *sparse(lambda rows: setattr(rows, "indices", rows.indices[:2])),
    *sparse(lambda rows: setattr(rows, "indptr", rows.indptr[:1])),
    *sparse(rows=csr_matrix((np.ones(2, np.float32), [3, 1], [0, 2]), shape=(1, 4))),
    *sparse(rows=csr_matrix(X[:1]).tocsc()),
]

LINEAR = Network((4, 3, 2), loss="huber")

#: Of a regression.
NO_TARGETS = [
    lambda b, net: b.train(LINEAR, X, LABELS, ORDER, 0.1),
    lambda b, net: b.stepper(LINEAR).train(X, uniform(1, 5, 3), 0.1),
]

TABLE = [
    *((name, *row) for name in ("reference", "cpu", "cuda-emulated") for row in REFUSED),
    *((name, *row) for name in ("reference", "cpu") for row in REFUSED_ON_A_CPU),
    *(("cpu", lambda b, net, call=call: call(), message) for call, message in REFUSED_CHOICES),
    *(("cpu", call, r"labels: .*expected float32 of shape \(5, 2\)") for call in NO_TARGETS),
    ("cuda-emulated", lambda b, net: b.load(LINEAR), "loss huber: the backend"),
    ("cuda-emulated", lambda b, net: b.store(net, Network((4, 2))), r"a network of \(4, 2\)"),
    ("cuda-emulated", deform(out=IMAGES.copy()), "out: ndarray, expected an array on the device"),
    *((name, call, "images: expected compressed") for name in SIMD for call in BROKEN_ROWS),
    ("cuda-emulated", deform_in_place, "out: expected memory that the images do not use"),
]


@pytest.mark.parametrize(("name", "call", "message"), TABLE)
def test_what_cannot_be_used_is_refused_before_anything_runs(name, call, message):
    backend = get_backend(name)
    network = Network((4, 3, 2), seed=1)
    before, loaded = bits(network), backend.load(network)
    with pytest.raises(InputError, match=f"^({message})") as error:
        call(backend, loaded)
    assert len(str(error.value)) < 300
    backend.store(loaded, network)
    assert bits(network) == before


def test_no_more_threads_than_cores(monkeypatch):
    """More would wait for a core at every barrier."""
    monkeypatch.setattr(simd, "_at_most_cores", AT_MOST_CORES)
    cores = available_cores()
    for threads in (1, cores, cores + 1, 1024):
        backend = backends.get("scalar", threads)
        assert backend.threads == min(threads, cores)
        assert f" {backend.threads} thread" in backend.description


def test_the_environment_and_the_cpu_which_is_never_a_device(monkeypatch):
    reason = backends._reason
    monkeypatch.setattr(backends, "_reason", lambda name: None if name == "cuda" else reason(name))
    monkeypatch.delenv("MLPCORE_BACKEND", raising=False)
    assert backends._resolve("auto") == "cuda"
    assert backends.get("cpu").name == SIMD[-1]
    for name, expected in (("cpu", SIMD[-1]), ("scalar", "scalar")):
        monkeypatch.setenv("MLPCORE_BACKEND", name)
        assert backends.get().name == expected
    monkeypatch.setenv("MLPCORE_BACKEND", "abacus")
    with pytest.raises(InputError, match="abacus"):
        backends.get()
