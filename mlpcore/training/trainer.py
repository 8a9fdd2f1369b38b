"""The training loop: on-line back-propagation on a training set deformed anew every epoch.

Nothing here prints or touches the disk: whoever wants to show or to keep what happens is an
`Observer`. A stop in the middle of an epoch loses nothing, because deformation and order are
functions of the seed and the epoch alone: the state says how many samples are done, and a
`Trainer` that is given this state deforms the same images again and goes on.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from mlpcore import deformation
from mlpcore.backends.base import (
    IMAGES_PER_GRID,
    Backend,
    TrainingResult,
    check_range,
)
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState
from mlpcore.typing import BackendArray

__all__ = [
    "Diverged",
    "EpochMetrics",
    "EpochProgress",
    "Observer",
    "Trainer",
    "TrainingConfig",
    "TrainingState",
]

#: Samples of one `Backend.train` call, after which the loss is looked at. A power of two, so
#: that a backend's blocks of samples lie the same wherever an epoch was interrupted.
SEGMENT = 8192

#: Seconds that a part of the deformation should take: a stop waits for its end.
PART_SECONDS = 0.1


class Diverged(InputError):
    """Weights or loss are no longer finite: the learning rate was too high."""


class _Stopped(Exception):
    """Unwinds to `Trainer.run`."""


class Observer:
    """Is told what a `Trainer` does. These methods do nothing: override what is of interest."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """An epoch begins, or goes on where `trainer.state.progress` is."""

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """So many images are done in a phase: "deforming", "training" or "evaluating".

        Of evaluating, those of the sets that are done: the training images count at once. Called
        often; an exception from here ends the run without `on_stop`.
        """

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        """An epoch is complete; `trainer.state` includes it."""

    def on_stop(self, trainer: Trainer) -> None:
        """Training stops before its end, as asked; `trainer.state` is where to go on."""


class Trainer:
    """Trains a network on a data set.

    Parameters
    ----------
    config
        The settings; `config.backend` only records a name, `backend` is what computes.
    dataset
        Images, labels and the number of classes.
    backend
        Computes everything.
    observers
        Told in this order what happens.
    state
        Where to go on; by default a new network is drawn from the seed.

    Raises
    ------
    InputError
        When the network of `state` does not fit the settings and the data.

    Examples
    --------
    A stop, and what goes on from there:

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
        dataset: Dataset,
        backend: Backend,
        observers: Iterable[Observer] = (),
        state: TrainingState | None = None,
    ):
        self.config, self.dataset, self.backend = config, dataset, backend
        self.observers = tuple(observers)
        sizes = (dataset.n_inputs, *config.hidden_layers, dataset.n_classes)
        self.state = state or TrainingState(Network(sizes, config.seed))
        if self.state.network.layer_sizes != sizes:
            raise InputError(
                f"a network of {self.state.network.layer_sizes}, expected {sizes} "
                "for these settings and data"
            )
        for name, labels in (("train", dataset.train_labels), ("test", dataset.test_labels)):
            check_range(f"{name} labels", labels, dataset.n_classes)
        self._stop = False
        self._part = IMAGES_PER_GRID
        self._network = backend.load(self.state.network)
        self._train_images = backend.put(dataset.train_images)
        self._train_labels = backend.put(dataset.train_labels)
        self._test_images = backend.put(dataset.test_images)
        self._test_labels = backend.put(dataset.test_labels)
        self._shown = self._train_images  # what an epoch presents
        if not config.deformation.is_identity:
            self._shown = backend.put(np.empty_like(dataset.train_images))
            self._maps = backend.put(np.empty((self.n_samples, 2, 2), np.float32))
        self._order = backend.put(np.empty(self.n_samples, np.int32))
        backend.reserve(self._network, self._shown, self._train_labels)

    @property
    def n_samples(self) -> int:
        """Samples of an epoch: the size of the training set."""
        return len(self.dataset.train_labels)

    def request_stop(self) -> None:
        """Asks `run` to return soon; for signal handlers, observers and other threads."""
        self._stop = True

    def run(self) -> bool:
        """Trains until all epochs are done or a stop was requested.

        Returns
        -------
        bool
            Whether all epochs are done. If not, another call goes on.

        Raises
        ------
        Diverged
            When weights or loss are not finite. `state.network` is then of no use.

        Whatever else is raised, by an observer or on Ctrl-C, `state` is as at a stop, and
        another call goes on. Python raises a KeyboardInterrupt between any two of its
        instructions, though: one at the very moment at which samples or an epoch are counted, or
        a second one while the first is dealt with, may leave them uncounted. A handler of the
        signal that calls `request_stop` cannot.
        """
        try:
            while self.state.epoch < self.config.epochs:
                self._check_stop()
                self._run_epoch()
        except _Stopped:
            self._stop = False
            self._collect()
            self._tell("on_stop")
            return False
        except BaseException:
            with suppress(InputError):  # of a device that has failed
                self.backend.store(self._network, self.state.network)
            raise
        return True

    def _run_epoch(self) -> None:
        state = self.state
        self._tell("on_epoch_start")
        if state.progress.samples < self.n_samples:
            with self._timed("deformation_seconds"):
                self._deform()
            with self._timed("training_seconds"):
                self._train()
        self._collect()
        with self._timed("evaluation_seconds"):
            validation_errors, test_errors = self._evaluate()
        progress = state.progress
        metrics = EpochMetrics(
            epoch=state.epoch + 1,
            learning_rate=self.config.learning_rate_at(state.epoch),
            n_train=self.n_samples,
            n_test=len(self.dataset.test_labels),
            training_errors=progress.errors,
            # Six digits: the order of summation, and so the last of 16, differs for an epoch
            # that was interrupted.
            loss=float(f"{progress.loss / self.n_samples:.6g}"),
            validation_errors=validation_errors,
            test_errors=test_errors,
            deformation_seconds=round(progress.deformation_seconds, 4),
            training_seconds=round(progress.training_seconds, 4),
            evaluation_seconds=round(progress.evaluation_seconds, 4),
        )
        best, before = state.best, state.best_metrics
        if before is None or validation_errors < before.validation_errors:
            best = state.network.copy()
        history, progress = [*state.history, metrics], EpochProgress()
        # At once, and without a call, in which an interrupt would be noticed.
        state.history, state.progress, state.best = history, progress, best
        self._tell("on_epoch_end", metrics)

    def _deform(self) -> None:
        """Deforms the training set part by part, so that a stop need not wait for all of it."""
        if self._shown is self._train_images:
            return
        begin = 0
        while begin < self.n_samples:
            self._report("deforming", begin, self.n_samples)
            started = time.perf_counter()
            part = slice(begin, min(begin + self._part, self.n_samples))
            deformation.deform(
                self._train_images[part],
                self._train_labels[part],
                self.config.deformation,
                self.config.seed,
                self.state.epoch,
                self.backend,
                first=begin,
                out=self._shown[part],
                maps=self._maps[part],
            )
            begin = part.stop
            # The result does not depend on the size of the parts, so the clock may choose it.
            quick = time.perf_counter() - started < PART_SECONDS / 2
            if quick and self._part < self.n_samples:
                self._part *= 2

    def _train(self) -> None:
        state = self.state
        order = self.backend.permutation(
            self.n_samples, self.config.seed, state.epoch, out=self._order
        )
        learning_rates = self.config.learning_rates_at(state.epoch)
        images = self._flat(self._shown)
        while state.progress.samples < self.n_samples:
            before = state.progress
            begin = before.samples
            self._report("training", begin, self.n_samples)
            end = min((begin // SEGMENT + 1) * SEGMENT, self.n_samples)
            result = self.backend.train(
                self._network,
                images,
                self._train_labels,
                order[begin:end],
                learning_rates,
                functools.partial(self._on_samples, before),
                self.config.target,
            )
            if not math.isfinite(result.loss):
                raise self._diverged("the loss")

    def _evaluate(self) -> list[int]:
        """Validation and test errors."""
        sets = (
            (self._flat(self._train_images), self._train_labels),
            (self._flat(self._test_images), self._test_labels),
        )
        total, done, errors = sum(len(images) for images, _ in sets), 0, list[int]()
        for images, labels in sets:
            report = functools.partial(self._report, "evaluating", done, total)
            report()
            errors.append(self.backend.count_errors(self._network, images, labels, report))
            done += len(images)
        return errors

    def _flat(self, images: BackendArray) -> BackendArray:
        """Images (n, h, w) as a network's inputs (n, h w), a view."""
        return images.reshape(len(images), self.dataset.n_inputs)

    def _collect(self) -> None:
        """Brings the weights back from the backend and checks that training may go on."""
        self.backend.store(self._network, self.state.network)
        if not self.state.network.is_finite():
            raise self._diverged("a weight")

    def _diverged(self, what: str) -> Diverged:
        epoch = self.state.epoch
        return Diverged(
            f"training diverged in epoch {epoch + 1} at learning rate "
            f"{max(self.config.learning_rates_at(epoch)):.4g}: {what} is not finite; "
            "expected a lower learning rate"
        )

    def _check_stop(self) -> None:
        if self._stop:
            raise _Stopped

    def _report(self, phase: str, done: int, total: int) -> None:
        self._tell("on_progress", phase, done, total)
        self._check_stop()

    def _on_samples(self, before: EpochProgress, result: TrainingResult) -> bool:
        """Counts the samples that a call of `Backend.train` has done so far; true stops it."""
        self.state.progress = dataclasses.replace(
            before,
            samples=before.samples + result.samples,
            errors=before.errors + result.errors,
            loss=before.loss + result.loss,
        )
        self._tell("on_progress", "training", self.state.progress.samples, self.n_samples)
        return self._stop

    def _tell(self, event: str, *arguments: object) -> None:
        for observer in self.observers:
            getattr(observer, event)(self, *arguments)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Adds the seconds spent to a field of the epoch's progress, also on the way out."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = getattr(self.state.progress, name) + time.perf_counter() - started
            setattr(self.state.progress, name, spent)
