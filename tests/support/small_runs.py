"""Small data, small runs and comparisons for the tests of training, run folders and commands."""

from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from msgspec import structs

from idx_files import write_set
from mlpcore import Dataset, DeformationParameters, InputError, TrainingConfig, backends
from mlpcore.data import mnist
from mlpcore.data.idx import FILES
from mlpcore.data.pixels import PixelSpec
from mlpcore.store.documents import to_metadata
from mlpcore.store.run_folder import Run
from mlpcore.store.weights import write_network
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer


def make_pixels(n, seed, n_classes=3, height=7, width=5):
    """Noisy images, one pattern per class, and their labels, as bytes."""
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(99).integers(0, 2, (n_classes, height, width)) * 150
    labels = (np.arange(n) % n_classes).astype(np.uint8)
    noise = rng.integers(0, 106, (n, height, width))
    return (patterns[labels] + noise).astype(np.uint8), labels


#: The data of most runs in the tests: three grids of images; not a multiple of anything.
ARRAYS, PIXELS = (*make_pixels(230, 0), *make_pixels(60, 1)), PixelSpec((7, 5), (7, 5))
DATA = Dataset("small", *ARRAYS, (0, 1, 2), "nowhere", PIXELS, similar_labels=(1,))


def isolate(monkeypatch, folder):
    """Works in a new folder, without this machine's data set, choice of backend and network."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLPCORE_DATA", raising=False)
    monkeypatch.delenv("MLPCORE_BACKEND", raising=False)
    monkeypatch.setattr(mnist, "cache_folder", lambda: folder.parent / "cache" / "mnist")
    monkeypatch.setattr(mnist, "fetch", Mock(side_effect=AssertionError("download attempted")))


def write_idx(folder, n_train=230, n_test=60):
    """The same data as IDX files."""
    arrays = *make_pixels(n_train, 0), *make_pixels(n_test, 1)
    return write_set(folder, dict(zip(FILES, arrays)))


def write_weights(path, network, shape=(7, 5), pixels=None, data="letters", **seen):
    """A file of weights, as of a training on pictures that are scaled to images of a shape."""
    spec = PixelSpec(shape, pixels or shape, whole="value_range" not in seen, **seen)
    write_network(Path(path), network, to_metadata(data=data, pixels=spec))


#: The settings of the recipe of this name, but for its learning rate.
MODERN = {"activation": "relu", "loss": "cross-entropy", "init": "he"}
MODERN |= {"input_range": "unit", "decay": "linear"}


def make_config(**changes):
    """Settings of a short run, with deformations that so small images survive."""
    defaults = {"hidden_layers": (9, 6), "epochs": 3, "learning_rate": 0.01, "seed": 5}
    defaults["deformation"] = DeformationParameters(6.0, 4.0, 5.0, 5.0, similar_labels=(1,))
    return TrainingConfig(**defaults | changes)


def same_weights(a, b):
    """Whether two networks have the same bits."""
    pairs = zip([*a.weights, *a.biases], [*b.weights, *b.biases])
    return all(np.array_equal(*pair) for pair in pairs)


def assert_same_result(a, b):
    """Two states agree in everything but times."""
    assert same_weights(a.network, b.network)
    assert same_weights(a.best, b.best)
    times = {name: 0.0 for name in EpochMetrics.__struct_fields__ if name.endswith("_seconds")}
    first, second = ([structs.replace(m, **times) for m in each.history] for each in (a, b))
    assert first == second
    assert a.progress.samples == b.progress.samples


class Hook(Observer):
    """Calls a function of trainer, event and its arguments at every event."""

    def __init__(self, function):
        self.on_progress = function
        self.on_epoch_start = lambda trainer: function(trainer, "epoch_start")
        self.on_epoch_end = lambda trainer, metrics: function(trainer, "epoch_end", metrics)
        self.on_stop = lambda trainer: function(trainer, "stop")


class StopAfter:
    """A trainer's backend, which stops it, once, after a number of samples of an epoch.

    Real ones ask by the clock, which no test should depend on. Those that compute by blocks of
    samples stop between two blocks only, so `samples` has to be such a place.
    """

    def __init__(self, trainer, epoch, samples):
        self.trainer, self.epoch, self.samples = trainer, epoch, samples
        self.backend, trainer.backend = trainer.backend, self

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def train(self, network, images, labels, order, learning_rate, progress, *rest):
        state = self.trainer.state
        left = self.samples - state.progress.samples
        if state.epoch == self.epoch and left < len(order):
            order, self.samples = order[:left], np.inf
            self.trainer.request_stop()
        result = self.backend.train(network, images, labels, order, learning_rate, None, *rest)
        progress(result)
        return result


def train(config, backend, observers=(), state=None):
    """The state of a run on `DATA` that has been trained to its end."""
    trainer = Trainer(config, DATA, backend, observers, state)
    assert trainer.run() is True
    return trainer.state


def start_run(folder, config, data, backend=None):
    """A trainer that writes to a new folder, and its `Run`, which the caller closes."""
    trainer = Trainer(config, data, backend or backends.get())
    run = Run.create(folder, config, data, trainer.backend.description)
    trainer.observers = (run,)
    return trainer, run


def finish_run(folder, config, data, backend=None):
    """The state of a run that has been trained to its end."""
    trainer, run = start_run(folder, config, data, backend)
    with closing(run):
        assert trainer.run() is True
    return trainer.state


def load_run(folder):
    """The state of a run on disk."""
    with closing(Run.open(folder)) as run:
        return run.load()


def refusal(call, *arguments, **options):
    """The one line with which a call refuses its input."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
