"""The training loop: on-line back-propagation on the samples of a source, epoch by epoch.

Nothing here prints or touches the disk. An `Observer` shows or keeps what happens.

Training can stop in the middle of an epoch without losing anything. Samples and their order depend
only on the seed and the epoch, and the state counts the samples that are done. A `Trainer` that
gets this state asks its source for the rest.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec
import numpy as np

from mlpcore.backends.arguments import check_decay
from mlpcore.backends.base import Backend, TrainingResult
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError
from mlpcore.network.network import Network
from mlpcore.training import sources
from mlpcore.training.config import TrainingConfig
from mlpcore.training.sources import ArraySource, Segment, Source
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState, best_of
from mlpcore.typing import Float32Array


class Diverged(InputError):
    """Weights or loss are no longer finite: the learning rate was too high."""


class _Stopped(Exception):
    """Leaves the loop and ends up in `Trainer.run`."""


class Observer:
    """A `Trainer` calls these methods. They do nothing: override those of interest."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """An epoch begins, or continues at `trainer.state.progress`."""

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """A phase has done some of its images: "training" or "evaluating".

        Evaluation counts a whole set of images when it is done. This is called often. An
        exception from here ends the run without `on_stop`.
        """

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """An epoch is complete; `trainer.state` includes it."""

    def on_stop(self, trainer: Trainer) -> None:
        """Training stops before its end, as requested; it can continue from `trainer.state`."""

    def on_run_end(self, trainer: Trainer) -> None:
        """`Trainer.run` is about to return, or to raise any exception."""


class Trainer:
    """Trains a network on the samples of a source.

    Parameters
    ----------
    config
        The settings. `config.backend` only records a name; `backend` computes.
    source
        The samples. A data set stands for its training images, in the range that the settings name
        and deformed as they say, validated and tested after each epoch: `ArraySource.of`.
    backend
        Computes everything.
    observers
        Called in this order.
    state
        Where to continue; by default a new network is drawn from the seed.
    weight_decay
        How fast weights, but not biases, shrink: by exp(-eta weight_decay) per sample, eta being
        the rate of their layer. It is decoupled from the gradient (Loshchilov and Hutter 2019,
        "Decoupled weight decay regularization"). Only on CPUs, and not part of the settings.

    Raises
    ------
    InputError
        When the network of `state` does not fit the settings and the source, a learning rate would
        be 0 in float32, `ArraySource.of` refuses the data set, or weights are to decay on a GPU.

    Examples
    --------
    Stop and continue:

    >>> from mlpcore import backends, dataset
    >>> class StopInSecondEpoch(Observer):
    ...     def on_progress(self, trainer, phase, done, total):
    ...         if trainer.state.epoch == 1 and phase == "training":
    ...             trainer.request_stop()
    >>> data, backend = dataset.load(name="digits"), backends.get("scalar")
    >>> config = TrainingConfig(hidden_layers=(20,), epochs=2, seed=1)
    >>> trainer = Trainer(config, data, backend, observers=[StopInSecondEpoch()])
    >>> trainer.run(), trainer.state.epoch
    (False, 1)
    >>> rest = Trainer(config, data, backend, state=trainer.state)
    >>> rest.run(), rest.state.epoch
    (True, 2)
    """

    def __init__(
        self,
        config: TrainingConfig,
        source: Source | Dataset,
        backend: Backend,
        observers: Iterable[Observer] = (),
        state: TrainingState | None = None,
        weight_decay: float = 0.0,
    ):
        if isinstance(source, Dataset):
            source = ArraySource.of(source, config, backend)
        self.config, self.source, self.backend = config, source, backend
        self.observers = tuple(observers)
        sizes = (source.n_inputs, *config.hidden_layers, source.n_classes)
        self.state = state or TrainingState(config.new_network(sizes))
        network = self.state.network
        found = network.layer_sizes, network.activation, network.loss
        if found != (expected := (sizes, config.activation, config.loss)):
            raise InputError(
                f"a network of {', '.join(map(str, found))}: expected "
                f"{', '.join(map(str, expected))} for these settings and data"
            )
        for epoch, samples in ((0, 0), (config.epochs - 1, self.n_samples - 1)):
            self._learning_rates(epoch, samples)  # refuses what float32 lacks
        self._stop = False
        self._stepper = backend.stepper(network) if source.is_sparse else None
        self._network = network if source.is_sparse else backend.load(network)
        check_decay(weight_decay)
        self._weight_decay = weight_decay
        backend.check_option("weight_decay", weight_decay or None)
        source.reserve(self._network)

    @property
    def n_samples(self) -> int:
        """The number of samples of an epoch."""
        return self.source.n_samples

    def request_stop(self) -> None:
        """Ask `run` to return soon. Signal handlers, observers and other threads may call this."""
        self._stop = True

    def run(self, until: int | None = None) -> bool:
        """Train until all epochs, or only the first `until`, are done, or a stop is requested.

        Returns
        -------
        bool
            Whether these epochs are done. If not, another call continues.

        Raises
        ------
        Diverged
            When weights or loss are not finite. `state.network` is of no use then.

        Notes
        -----
        After any other exception, from an observer or by Ctrl-C, `state` is as after a stop and
        another call continues. There is one gap: Python raises KeyboardInterrupt between any two
        of its instructions. If that happens while samples or an epoch are being counted, or a
        second one comes while the first is handled, these may stay uncounted. A signal handler
        that calls `request_stop` has no such gap.
        """
        epochs = self.config.epochs if until is None else min(until, self.config.epochs)
        try:
            while self.state.epoch < epochs:
                self._check_stop()
                self._run_epoch()
        except _Stopped:
            self._stop = False
            self._collect()
            for observer in self.observers:
                observer.on_stop(self)
            return False
        except BaseException:
            with suppress(InputError):  # from a device that has failed
                self._store()
            raise
        finally:
            for observer in self.observers:
                observer.on_run_end(self)
        return True

    def _run_epoch(self) -> None:
        state = self.state
        for observer in self.observers:
            observer.on_epoch_start(self)
        if state.progress.samples < self.n_samples:
            with self._timed("deformation_seconds"):
                self.source.begin(state.epoch)
            self._train()
        self._collect()
        with self._timed("evaluation_seconds"):
            validates = self.config.validates(state.epoch + 1)
            validation_errors = self._count_errors(self.source.validation if validates else None, 0)
            test_errors = self._count_errors(self.source.test, self.n_samples)
        metrics = self._metrics(validation_errors, test_errors or 0)
        best = state.best
        if best_of([*state.history, metrics]) is metrics:
            best = state.network.copy()
        history, progress = [*state.history, metrics], EpochProgress()
        # In one line without a call, so that no interrupt comes in between.
        state.history, state.progress, state.best = history, progress, best
        for observer in self.observers:
            observer.on_epoch_end(self, metrics)

    def _metrics(self, validation_errors: int | None, test_errors: int) -> EpochMetrics:
        """The metrics of the epoch in progress, which is complete."""
        epoch, progress = self.state.epoch, self.state.progress
        return EpochMetrics(
            epoch=epoch + 1,
            learning_rate=self.config.learning_rate_at(epoch),
            n_train=self.n_samples,
            n_test=self.source.n_test,
            training_errors=progress.errors,
            # After an interruption the sum is rounded differently in its last digit.
            loss=float(f"{progress.loss / self.source.total_weight:.6g}"),
            validation_errors=validation_errors,
            test_errors=test_errors,
            deformation_seconds=round(progress.deformation_seconds, 4),
            training_seconds=round(progress.training_seconds, 4),
            evaluation_seconds=round(progress.evaluation_seconds, 4),
        )

    def _train(self) -> None:
        """Trains on the rest of an epoch, segment by segment; the loss is checked after each."""
        state, target, decay = self.state, self.config.target, self._weight_decay
        size = min(sources.SEGMENT, self.source.room)
        while (begin := state.progress.samples) < self.n_samples:
            self._report("training", begin, self.n_samples)
            end = min((begin // size + 1) * size, self.n_samples)
            with self._timed("deformation_seconds"):
                inputs, labels, order, weights = self.source.segment(state.epoch, begin, end)
            rates = self._learning_rates(state.epoch, begin)
            note = functools.partial(self._on_samples, state.progress)
            with self._timed("training_seconds"):
                if self._stepper is None:
                    arguments = inputs, labels, order, rates, note, target, weights, decay
                    result = self.backend.train(self._network, *arguments)
                else:
                    result = self._stepper.train(inputs, labels, rates, target, weights, decay)
                    note(result)
            if not math.isfinite(result.loss):
                raise self._diverged("the loss")

    def _learning_rates(self, epoch: int, samples: int) -> tuple[float, ...]:
        """The rate of each layer in the middle of the segment that has this sample of an epoch."""
        size = sources.SEGMENT
        begin = samples // size * size
        middle = (begin + min(begin + size, self.n_samples)) / 2
        return self.config.learning_rates_after(epoch * self.n_samples + middle, self.n_samples)

    def _on_samples(self, before: EpochProgress, result: TrainingResult) -> bool:
        """Count what a `Backend.train` call has done so far; returns whether to stop."""
        self.state.progress = msgspec.structs.replace(
            before,
            samples=before.samples + result.samples,
            errors=before.errors + result.errors,
            loss=before.loss + result.loss,
        )
        for observer in self.observers:
            observer.on_progress(self, "training", self.state.progress.samples, self.n_samples)
        return self._stop

    def _count_errors(self, samples: Segment | None, done: int) -> int | None:
        """Counts the errors of a set, if there is one; `done` samples of others were before it."""
        if samples is None:
            return None
        total = self.n_samples + self.source.n_test
        report = functools.partial(self._report, "evaluating", done, total)
        report()
        if self._stepper is None:
            parts = ((each.inputs, each.labels, report) for each in self.source.parts(samples))
            return sum(self.backend.count_errors(self._network, *each) for each in parts)
        guesses = self._stepper.predict(samples.inputs).argmax(axis=1)
        return int(np.count_nonzero(guesses != samples.labels))

    def test_outputs(self, network: Network) -> Float32Array:
        """The outputs (n_test, n_classes) of a network for the test samples of the source."""
        assert self.source.test is not None
        loaded, parts = self.backend.load(network), self.source.parts(self.source.test)
        return np.concatenate([self.backend.predict(loaded, each.inputs) for each in parts])

    def _store(self) -> None:
        """Brings `state.network` up to date."""
        if self._stepper is None:
            self.backend.store(self._network, self.state.network)
        else:
            self.state.network = self._stepper.network

    def _collect(self) -> None:
        """Brings the weights back from the backend, and checks that training may continue."""
        self._store()
        if not self.state.network.is_finite():
            raise self._diverged("a weight")

    def _diverged(self, what: str) -> Diverged:
        epoch, samples = self.state.epoch, self.state.progress.samples
        rate = max(self._learning_rates(epoch, max(0, samples - 1)))
        return Diverged(
            f"training diverged in epoch {epoch + 1} at learning rate {rate:.4g}: {what} is not "
            "finite; expected a lower learning rate"
        )

    def _check_stop(self) -> None:
        if self._stop:
            raise _Stopped

    def _report(self, phase: str, done: int, total: int) -> None:
        for observer in self.observers:
            observer.on_progress(self, phase, done, total)
        self._check_stop()

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Add the seconds spent to a field of the epoch's progress, also after an exception."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = getattr(self.state.progress, name) + time.perf_counter() - started
            setattr(self.state.progress, name, spent)
