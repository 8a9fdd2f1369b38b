"""Calls of the public functions with arguments that may be wrong. `torture.api` runs this.

A call may succeed, or raise an `InputError`, a `ValueError`, a `TypeError` or a `MemoryError` with
one short line. Two backends must agree whether a call is right, and about its result.
"""

from __future__ import annotations

import mmap
import os
import pickle
import random
import resource
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mlpcore import ElasticDeformer, Network, OnlineMLPClassifier, backends, deformation
from mlpcore.backends import Backend
from mlpcore.backends.simd import SCHEDULES, SimdBackend
from mlpcore.data.dataset import Dataset
from mlpcore.deformation import DeformationParameters
from mlpcore.store.weights import read_network, write_network
from mlpcore.typing import AnyArray
from torture.arguments import array, scalar

#: What a call may raise.
ALLOWED = (ValueError, TypeError, MemoryError)

#: An error's line is shorter.
LONGEST = 300

#: Address space without the sanitizers, so that the machine survives.
MEMORY = 4 << 30

Call: TypeAlias = Callable[[Backend], Any]


class Caller:
    """Draws the arguments of one call, and makes the call."""

    def __init__(self, rng: random.Random):
        self.rng, self.numbers = rng, np.random.default_rng(rng.getrandbits(32))
        n_layers = rng.randint(1, 3)
        self.sizes = tuple(rng.choice((1, 2, 5, 16, 33, 130)) for _ in range(n_layers + 1))
        kind = rng.choice((("tanh", "squared"), ("relu", "cross-entropy"), ("relu", "squared")))
        self.network = Network(self.sizes, 1, *kind, "he")
        self.extreme = False  # whether rounding alone may make results differ
        self.n = rng.choice((0, 1, 2, 7, 40, 130))

    def floats(self, *shape: int) -> AnyArray:
        return self.numbers.uniform(-1, 1, shape).astype(np.float32)

    def a(self, right: AnyArray, *others: AnyArray) -> Any:
        argument = array(self.rng, right, others)
        if isinstance(argument, np.ndarray) and argument.dtype.kind == "f":
            self.extreme |= argument.size > 10**6 or bool((abs(argument) > 1e3).any())
        return argument

    def small(self, right: AnyArray) -> Any:
        """An argument that scikit-learn, which reads all of it, has read in a moment."""
        while True:
            argument = self.a(right)
            if np.size(argument) < 10**6:
                return argument

    def s(self, *right: Any) -> Any:
        return scalar(self.rng, lambda: self.rng.choice(right))

    # ---- operations that every CPU backend has; each returns a function of the backend ----------

    def train(self) -> Call:
        n, network = self.n, self.network
        images, labels = self.floats(n, self.sizes[0]), self.numbers.integers(0, self.sizes[-1], n)
        order, weights = self.numbers.permutation(n), abs(self.floats(n))
        arguments = (
            self.a(images),
            self.a(labels.astype(np.uint8)),
            self.a(order.astype(np.int32)),
            self.s(1e-3, 1e-2),
        )
        self.extreme |= repr(arguments[3]) not in (
            "0.001",
            "0.01",
        )  # rounding grows with a large rate
        options = {
            "target": self.s(1.0, 0.5),
            "sample_weight": None if self.rng.randrange(2) else self.a(weights),
        }

        def call(backend: Backend) -> Any:
            twin = network.copy()
            backend.train(twin, *arguments, **options)
            return [*twin.weights, *twin.biases]

        return call

    def predict(self) -> Call:
        images = self.a(self.floats(self.n, self.sizes[0]))
        return lambda backend: backend.predict(self.network, images)

    def count_errors(self) -> Call:
        images, labels = self.a(self.floats(self.n, self.sizes[0])), np.zeros(self.n, np.uint8)
        labels = self.a(labels)
        return lambda backend: backend.count_errors(self.network, images, labels) >= 0

    def layers(self) -> Call:
        layer = self.s(*range(len(self.sizes) - 1))
        whole = isinstance(layer, int) and 0 <= layer < len(self.sizes) - 1
        n_in, n_out = self.sizes[layer : layer + 2] if whole else self.sizes[:2]
        inputs, deltas = self.a(self.floats(self.n, n_in)), self.a(self.floats(self.n, n_out))
        rate, which = self.s(1e-3), self.rng.randrange(3)

        def call(backend: Backend) -> Any:
            if which == 0:
                return backend.forward(self.network, layer, inputs)
            if which == 1:
                return backend.backward(self.network, layer, deltas, inputs)
            twin = self.network.copy()
            backend.update(twin, layer, inputs, deltas, rate)
            return [*twin.weights, *twin.biases]

        return call

    def drawn(self) -> Call:
        n, seed, epoch = self.s(self.n), self.s(0, 7, 2**64 - 1), self.s(0, 3, 2**32 - 1)
        labels, angles = self.a(np.zeros(self.n, np.uint8)), self.a(np.full(256, 0.2))
        scale, first, which = self.s(0.1, 0.0), self.s(0, 5), self.rng.randrange(3)
        n = min(n, 10**6) if isinstance(n, int) and n < 2**31 else n  # more takes all the memory
        sides = self.s(1, 5, 29), self.s(1, 5, 29)
        if which == 0:
            return lambda backend: backend.permutation(n, seed, epoch)
        if which == 1:
            return lambda backend: backend.affine_maps(labels, angles, scale, seed, epoch, first)
        return lambda backend: backend.noise(seed, epoch, first, *sides)

    def deform(self) -> Call:
        height, width = self.rng.choice((1, 5, 29)), self.rng.choice((1, 4, 29))
        right = self.floats(self.n, height, width)
        maps = np.eye(2, dtype=np.float32) + self.floats(self.n, 2, 2) / 5
        taps, alpha = self.a(np.full(21, 1 / 21, np.float32)), self.s(0.0, 30.0)
        place = self.s(0, 7), self.s(0, 3), self.s(0, 95, 10**6)
        images, maps = self.a(right), self.a(maps)
        field, background = self.a(self.floats(self.n, 2, height, width)), self.s(-1.0, 0.0)
        out = self.a(np.zeros_like(right), right) if self.rng.randrange(2) else None
        noise, which = self.a(self.floats(2, 30, 25)), self.rng.randrange(4)

        def call(backend: Backend) -> Any:
            mine = [
                a.copy() if isinstance(a, np.ndarray) and a.size < 1e6 else a for a in (images,)
            ]
            if which == 0:
                return backend.deform_by(images, maps, field, background)
            if which == 1:
                return backend.displacement_field(noise, taps, alpha)
            if out is None or which == 2:
                return backend.deform(images, maps, taps, alpha, *place, background=background)
            try:
                return np.array(backend.deform(images, maps, taps, alpha, *place, out, background))
            finally:
                if mine[0] is not images and images.flags.writeable:
                    images[...] = mine[0]

        return call

    def selected(self) -> Call:
        shape = self.n, self.rng.choice((1, 5)), self.rng.choice((4, 29))
        right, parameters = self.floats(*shape), DeformationParameters()
        arguments = (
            self.a(self.numbers.integers(0, 300, self.n)),
            self.a(np.zeros(self.n, np.uint8)),
            parameters,
            self.s(0, 7),
            self.s(0, 3),
        )
        images, background = self.a(right), self.s(-1.0)
        return lambda backend: deformation.deform_selected(images, *arguments, backend, background)

    # ---- the rest -------------------------------------------------------------------------------

    def construct(self) -> Call:
        choice = self.s(*backends.INSTRUCTION_SETS), self.s(None, 1, 3), self.s(*SCHEDULES)
        block, packed = self.s(1, 32), self.s(0, 1 << 20)
        sizes, seed = self.s(self.sizes, [3, 2]), self.s(None, 5)
        kind = self.s("tanh", "relu"), self.s("squared"), self.s("he")
        values = {
            name: self.s(value) for name, value in DeformationParameters().get_params().items()
        }
        which = self.rng.randrange(4)

        def call(backend: Backend) -> Any:
            if which == 0:
                SimdBackend(*choice, block, packed)
            elif which == 1:
                backends.get(*choice)
            elif which == 2:
                DeformationParameters(**values).label_bytes()
            else:
                network = pickle.loads(pickle.dumps(Network(sizes, seed, *kind)))
                network.initialise(0 if seed is None else seed)
            return None

        return call

    def files(self) -> Call:
        metadata = {"a": self.s("b")}
        dtype = self.s("float32", "float16")

        def call(backend: Backend) -> Any:
            with tempfile.TemporaryDirectory() as folder:
                write_network(Path(folder, "n"), self.network, metadata, dtype)
                read_network(Path(folder, "n"), self.sizes)
            return None

        return call

    def dataset(self) -> Call:
        X, y = self.small(self.floats(40, 6, 5)), self.small(np.arange(40) % 4)
        options = {
            "image_shape": self.s(None, (6, 5)),
            "test_size": self.s(0.25),
            "seed": self.s(0),
        }
        return lambda backend: Dataset.from_arrays(X, y, **options) and None

    def classifier(self) -> Call:
        X, y = self.small(self.floats(40, 12)), self.small(np.arange(40) % 4)
        values: dict[str, Any] = {"max_iter": 1, "random_state": 0, "hidden_layer_sizes": (5,)}
        name = self.rng.choice(list(OnlineMLPClassifier().get_params(deep=False)))
        if name not in ("max_iter", "n_iter_no_change", "callbacks", "verbose"):
            values[name] = self.s(values.get(name, OnlineMLPClassifier().get_params()[name]))
        more = self.small(self.floats(7, 12))

        def call(backend: Backend) -> Any:
            mlp = OnlineMLPClassifier(**values).fit(X, y)
            mlp.predict_proba(more)
            mlp.partial_fit(X, y)
            return None

        return call

    def deformer(self) -> Call:
        X, y = self.small(self.floats(9, 6, 5)), self.small(np.arange(9) % 4)
        name = self.rng.choice(list(ElasticDeformer().get_params(deep=False)))
        values = {"random_state": 0, name: self.s(ElasticDeformer().get_params()[name])}
        return lambda backend: ElasticDeformer(**values).fit_transform(X, y) is None

    def in_use(self) -> Call:
        """Arrays that another thread and the progress function change."""
        n = 400
        images, labels = self.floats(n, self.sizes[0]), np.zeros(n, np.uint8)
        order, weights = self.numbers.permutation(n).astype(np.int32), np.ones(n, np.float32)
        schedule = self.rng.choice(SCHEDULES)

        def spoil(*_: object) -> None:
            order[:], labels[:], weights[:] = self.rng.choice((-1, 2**31 - 1)), 255, np.nan
            images[:] = self.rng.choice((np.nan, 1e38, 0))

        def call(backend: Backend) -> Any:
            trainer = SimdBackend(backend.name, 3, schedule, packed_from=0)
            thread = threading.Thread(target=spoil)
            thread.start()
            try:
                trainer.train(
                    self.network, images, labels, order, 1e-3, spoil, sample_weight=weights
                )
            finally:
                thread.join()
            return None

        return call


#: The operations whose result another backend must agree with, and the others.
COMPARED = (
    *(Caller.train, Caller.predict, Caller.count_errors, Caller.layers, Caller.drawn),
    *(Caller.deform, Caller.selected),
)
ALONE = (
    *(Caller.construct, Caller.files, Caller.dataset, Caller.classifier, Caller.deformer),
    Caller.in_use,
)


def outcome(call: Call, backend: Backend) -> tuple[Any, str]:
    """The result or the exception of a call, and what is wrong with it."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call(backend), ""
    except ALLOWED as error:
        text = str(error)
        if not _from_scikit_learn(error) and ("\n" in text or len(text) >= LONGEST):
            return error, f"{type(error).__name__} of {len(text)} characters: {text[:200]!r}"
        return error, ""
    except BaseException as error:
        if isinstance(error, OverflowError) and _from_scikit_learn(error):
            return error, ""
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {str(error)[:200]!r} at {place.filename}:{place.lineno}"
        return error, text


def _from_scikit_learn(error: BaseException) -> bool:
    """Whether scikit-learn wrote the text, which often has several lines."""
    return any("sklearn" in each.filename for each in traceback.extract_tb(error.__traceback__))


def agree(one: Any, other: Any) -> bool:
    """Whether the results of two backends are near, where they are moderate numbers."""
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(agree, one, other))
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    usual = np.isfinite(one) & np.isfinite(other) & (abs(one) < 1e3) & (abs(other) < 1e3)
    # A thousandth: that is no test of rounding, but of a wrong pixel or weight.
    return one.shape == other.shape and bool((abs(one - other)[usual] < 1e-3).all())


def try_once(seed: int, number: int) -> str:
    """Makes call `number`; returns its name and what is wrong, or nothing."""
    rng = random.Random(f"{seed} {number}")
    names = [name for name in backends.INSTRUCTION_SETS if backends.available()[name] is None]
    method = rng.choice((*COMPARED, *ALONE))
    caller = Caller(rng)
    call = method(caller)
    result, problem = outcome(call, SimdBackend(rng.choice(names), 3, rng.choice(SCHEDULES)))
    if not problem and method in COMPARED and not isinstance(result, MemoryError):
        expected, problem = outcome(call, backends.get("reference"))
        refused = [isinstance(each, Exception) for each in (result, expected)]
        if not problem and refused[0] != refused[1] and not isinstance(expected, MemoryError):
            problem = f"C: {result!r:.100}, the reference: {expected!r:.100}"
        elif not (problem or refused[0] or caller.extreme or agree(result, expected)):
            problem = "another result than the reference's"
    return f"{method.__name__}: {problem}" if problem else ""


def numbers(first: int) -> Iterator[int]:
    """The numbers of the calls, noted in the file of the parent before each call."""
    with mmap.mmap(int(sys.argv[4]), 8) as noted:
        number = first
        while True:
            noted[:8] = number.to_bytes(8, "little")
            yield number
            number += 1


def main() -> None:
    """Calls until the time is over: SEED, FIRST number, SECONDS, and the parent's descriptor."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which reserves terabytes itself
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    seed, first, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    end = time.monotonic() + seconds
    for number in numbers(first):
        if time.monotonic() > end:
            break
        problem = try_once(seed, number)
        if problem:
            print(f"{number} {problem!r}", flush=True)
    os._exit(0)  # whatever threads still do


if __name__ == "__main__":
    main()
