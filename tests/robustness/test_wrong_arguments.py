"""No argument ends the process: a call works, or raises an error with one line.

C and the reference agree about whether a call is right, and arrays in any place of the memory give
the bits that their copies give.
"""

import os
import resource
import traceback
import warnings
from functools import partial
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import mlpcore
from c_operations import right_calls
from emulated import SIMD
from mlpcore import ElasticDeformer, Network, OnlineMLPClassifier, StreamMLPClassifier, backends
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.data.dataset import Dataset
from mlpcore.deformation import DeformationParameters
from oracle import KINDS, SEEDS, misaligned

#: What a call may raise, and the bytes that it may allocate, so that the machine survives.
ALLOWED, ALLOCATED = (ValueError, TypeError, MemoryError), 2**32


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """AddressSanitizer reserves terabytes, and limits allocations itself."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_DATA, (ALLOCATED, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


SCALARS = (
    *(None, True, -1, 0, 1, 100, 2**31, 2**63, -(2**70), 0.5, 1e300, float("nan"), 1j),
    *("", "1", "a\nb", "x" * 1000, "\ud800", b"1", [], [1], {}, object(), len),
    *(np.float32("nan"), np.int8(-3), np.uint64(2**63), np.array(2), np.array([1, 2]), np.bool_(1)),
)

DTYPES = "f4 >f4 f8 f2 c8 i1 u1 i4 >i4 i8 ? O U5 M8[s] V4".split()  # noqa: SIM905

VALUES = (-1, 0, 255, 2**31 - 1, -(2**31), np.nan, np.inf, -np.inf, 3e38, 1e-45)


def with_value(a, value, place):
    result = a.copy()
    result.reshape(-1)[place] = np.array(value).astype(a.dtype)
    return result


def repeated(a, axis, n):
    """A very long shape, all in one place of the memory."""
    shape = (n, *a.shape[1:]) if axis == 0 else (*a.shape[:-1], n)
    return np.broadcast_to(np.zeros((), a.dtype), shape)


#: Ways to change an array: its shape, its type, its memory, its values, or all.
SHAPES = (
    *(lambda a: a[None], np.ravel, lambda a: a[..., None], lambda a: a[:-1], lambda a: a[:0]),
    *(lambda a: a[..., :-1], np.transpose),
)
TYPES = [partial(np.ndarray.astype, dtype=dtype) for dtype in DTYPES]
MEMORY = (
    *(misaligned, lambda a: np.broadcast_to(a, a.shape), np.asfortranarray, lambda a: a[::-1]),
    *(lambda a: np.repeat(a, 2, axis=-1)[..., ::2], lambda a: np.broadcast_to(a[:1], a.shape)),
)
PLACES = slice(1), slice(None)
CONTENTS = [partial(with_value, value=value, place=each) for value in VALUES for each in PLACES]
OTHERS = (np.ndarray.tolist, lambda a: np.ma.masked_array(a, a == a))
LENGTHS = 2**31 - 2**10, 2**31, 2**40
HUGE = [partial(repeated, axis=axis, n=n) for axis in (0, -1) for n in LENGTHS]
CHANGES = (SHAPES, TYPES, MEMORY, CONTENTS, OTHERS)


@st.composite
def spoilt(draw, arguments, changes=CHANGES):
    """Arguments by their names, of which up to two are other ones.

    An array may also share its memory with another argument.
    """
    result = dict(arguments)
    arrays = [a for a in arguments.values() if isinstance(a, np.ndarray)]
    for name in draw(st.sets(st.sampled_from(sorted(arguments)), max_size=2)):
        right = arguments[name]
        if not isinstance(right, np.ndarray):
            result[name] = draw(st.sampled_from(SCALARS))
            continue
        fitting = [a for a in arrays if a.dtype == right.dtype and a.size >= right.size]
        overlaps = [lambda b, a=a: a.reshape(-1)[: b.size].reshape(b.shape) for a in fitting]
        change = draw(st.sampled_from([*changes, overlaps]).flatmap(st.sampled_from))
        with np.errstate(all="ignore"):
            result[name] = change(right)
    return result


def outcome(call, *arguments, **options):
    """The result or the exception of a call, with one line."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call(*arguments, **options)
    except (*ALLOWED, OverflowError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        if not any("sklearn" in frame.filename for frame in frames):  # which writes more lines
            assert isinstance(error, ALLOWED)
            assert "\n" not in str(error)
        return error


def operation(name, network, arguments, backend):
    """The result or exception of an operation, and the parameters afterwards."""
    arrays = [a for a in arguments.values() if isinstance(a, np.ndarray) and a.size < 10**6]
    saved = [(a, a.copy()) for a in arrays if a.flags.writeable]
    network = network.copy()
    subject = (network,) if name in ("train", "predict", "count_errors") else ()
    result = outcome(getattr(backend, name), *subject, **arguments)
    if name == "train" and not isinstance(result, Exception):
        result = np.concatenate([a.ravel() for a in (*network.weights, *network.biases)])
    result = result.copy() if isinstance(result, np.ndarray) else result
    for array, content in saved:  # one of them may be `out`
        array[...] = content
    return result


@given(
    sizes=st.lists(st.sampled_from([1, 2, 5, 16, 33, 130]), min_size=2, max_size=4),
    n=st.sampled_from([0, 1, 2, 7, 40, 130]),
    seed=SEEDS,
    kind=st.sampled_from(KINDS),
    choice=st.tuples(st.sampled_from(SIMD), st.just(3), st.sampled_from(SCHEDULES)),
    data=st.data(),
)
def test_operations(sizes, n, seed, kind, choice, data):
    calls = right_calls(sizes, n, seed)
    name = data.draw(st.sampled_from(list(calls)))
    arguments, name = data.draw(spoilt(calls[name], [*CHANGES, HUGE])), name.strip()
    network, backend = Network(sizes, 1, *kind, "he"), SimdBackend(*choice)
    got = operation(name, network, arguments, backend)
    expected = operation(name, network, arguments, backends.get("reference"))
    note(f"{name}: {got!r:.200}, the reference: {expected!r:.200}")
    if isinstance(got, MemoryError) or isinstance(expected, MemoryError):
        return
    assert isinstance(got, Exception) == isinstance(expected, Exception)
    arrays = {key: a for key, a in arguments.items() if isinstance(a, np.ndarray)}
    if not isinstance(got, Exception) and all(a.size < 10**6 for a in arrays.values()):
        copies = {key: np.array(a, order="C") for key, a in arrays.items()}
        again = operation(name, network, arguments | copies, backend)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(again))


def fitted(X, y, **parameters):
    defaults = {"max_iter": 1, "random_state": 0, "hidden_layer_sizes": (5,)}
    mlp = OnlineMLPClassifier(**defaults | parameters).fit(X, y)
    mlp.predict_proba(X)
    if hasattr(mlp, "partial_fit"):  # which settings that need all samples exclude
        mlp.partial_fit(X, y)


def streamed(X, y, last, weight, learner=StreamMLPClassifier, **parameters):
    """Samples, and then a last one, which may be of another kind."""
    learner = learner(**{"hidden_layer_sizes": (5,)} | parameters)
    for x, each in [*zip(X, y), (last, 1)]:
        learner.learn_one(x, each, weight)
        learner.predict_one(x)


def deformed(X, y, **parameters):
    ElasticDeformer(**parameters).fit_transform(X, y)


DEFORMER = ElasticDeformer(random_state=0).get_params(deep=False)
SETTINGS = OnlineMLPClassifier().get_params(deep=False)
LONG = ("max_iter", "n_iter_no_change", "callbacks", "verbose")
SAMPLES = {"X": np.random.default_rng(0).uniform(size=(40, 6, 5)), "y": np.arange(40) % 4}
ROWS = SAMPLES | {"X": SAMPLES["X"].reshape(40, 30)}
STREAM = ROWS | {"last": dict(enumerate(ROWS["X"][0])), "weight": 1.0}
GIVEN = signature(StreamMLPClassifier).parameters
STREAM_SETTINGS = {name: each.default for name, each in GIVEN.items()}
SELECTED = {"images": SAMPLES["X"].astype(np.float32), "labels": SAMPLES["y"].astype(np.uint8)}
SELECTED |= {"indices": np.arange(40) * 7, "seed": 7, "epoch": 3, "background": -1.0}

#: Public functions, and right arguments.
PUBLIC = [
    (backends.get, {"name": "scalar", "threads": 2, "schedule": "sparse"}),
    (SimdBackend, {"name": "scalar", "threads": 1, "schedule": "packed", "block": 32}),
    (lambda **values: DeformationParameters(**values).label_bytes(),
     DeformationParameters().get_params()),
    (Network, {"layer_sizes": (3, 2), "seed": 5, "activation": "tanh", "init": "he"}),
    (Dataset.from_arrays, {**SAMPLES, "value_range": (0, 1), "test_size": 0.25, "seed": 0}),
    (partial(mlpcore.deformation.deform_selected, parameters=DeformationParameters(),
             backend=backends.get("cpu")), SELECTED),
    (fitted, ROWS),
    *((fitted, {**ROWS, name: SETTINGS[name]}) for name in SETTINGS if name not in LONG),
    (streamed, STREAM),
    (streamed, STREAM | {"last": ROWS["X"][0], "learner": mlpcore.StreamMLPRegressor}),
    *((streamed, {**STREAM, name: STREAM_SETTINGS[name]}) for name in STREAM_SETTINGS),
    *((deformed, {**SAMPLES, name: DEFORMER[name]}) for name in DEFORMER),
]  # fmt: skip


@given(call=st.sampled_from(PUBLIC), data=st.data())
def test_public_functions(call, data):
    """Without arrays so long that scikit-learn would read for minutes."""
    function, right = call
    outcome(function, **data.draw(spoilt(right)))
