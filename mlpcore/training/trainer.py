"""The training loop: on-line back-propagation on a training set deformed anew every epoch.

Nothing here prints or touches the disk. An `Observer` shows or keeps what happens.

Training can stop in the middle of an epoch without losing anything. Deformation and order depend
only on the seed and the epoch, and the state counts the samples that are done. A `Trainer` that
gets this state deforms the same images again and continues.
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
from mlpcore.backends.arguments import IMAGES_PER_GRID, check_array, check_range, check_weights
from mlpcore.backends.base import Backend, TrainingResult
from mlpcore.cpu import check_memory
from mlpcore.data.dataset import Dataset
from mlpcore.deformation.deform import gaussian_taps
from mlpcore.deformation.values import background_of
from mlpcore.errors import InputError
from mlpcore.network.architecture import count_parameters
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState, best_of
from mlpcore.typing import ArrayLike, BackendArray

#: Samples of one `Backend.train` call, all at the same learning rates; the loss is checked after
#: each. A power of two, so that the blocks of a backend are the same wherever an epoch was
#: interrupted.
SEGMENT = 8192

#: A part of the deformation should take this many seconds, because a stop waits for its end.
PART_SECONDS = 0.1


class Diverged(InputError):
    """Weights or loss are no longer finite: the learning rate was too high."""


class _Stopped(Exception):
    """Leaves the loop and ends up in `Trainer.run`."""


class Observer:
    """A `Trainer` calls these methods. They do nothing: override those of interest."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """An epoch begins, or continues at `trainer.state.progress`."""

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        """A phase has done some of its images: "deforming", "training", "evaluating".

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
    """Trains a network on a data set.

    Parameters
    ----------
    config
        The settings. `config.backend` only records a name; `backend` computes.
    dataset
        Images in [-1, 1], labels and the number of classes. The network gets the images in the
        range that the settings name.
    backend
        Computes everything.
    observers
        Called in this order.
    state
        Where to continue; by default a new network is drawn from the seed.
    sample_weight
        (n_train,), 0 or more: the factor of the learning rate of each training sample, and of
        its loss in the mean of an epoch. Errors count without weights. The weights are in
        neither settings nor state: a trainer that continues needs the same ones.
    weight_decay
        How fast weights, but not biases, shrink: by exp(-eta weight_decay) a sample, eta being the
        rate of their layer. It is decoupled from the gradient (Loshchilov and Hutter 2019,
        "Decoupled weight decay regularization"), and applied after each segment of an epoch. Only
        on CPUs, and not part of the settings either.

    Raises
    ------
    InputError
        When the network of `state` does not fit the settings and the data, ones and sevens are to
        get strokes and the data have none, a label is beyond the number of classes, a learning rate
        would be 0 in float32, or a weight is negative, not finite, or 0 as all others are.

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
        dataset: Dataset,
        backend: Backend,
        observers: Iterable[Observer] = (),
        state: TrainingState | None = None,
        sample_weight: ArrayLike | None = None,
        weight_decay: float = 0.0,
    ):
        self.config, self.dataset, self.backend = config, dataset, backend
        self.observers = tuple(observers)
        sizes = (dataset.n_inputs, *config.hidden_layers, dataset.n_classes)
        # The current and the best network, what the backend packs, and what is being saved.
        needed = 4 * 4 * count_parameters(sizes)
        copies = 1 + (config.input_range != "signed") + (not config.deformation.is_identity)
        needed += copies * (dataset.train_images.nbytes + dataset.test_images.nbytes)
        check_memory(needed, "a network and data of this size")
        self.state = state or TrainingState(config.new_network(sizes))
        network = self.state.network
        found = network.layer_sizes, network.activation, network.loss
        if found != (expected := (sizes, config.activation, config.loss)):
            raise InputError(
                f"a network of {', '.join(map(str, found))}: expected "
                f"{', '.join(map(str, expected))} for these settings and data"
            )
        for epoch, samples in ((0, 0), (config.epochs - 1, self.n_samples - 1)):
            config.check_learning_rates(self._middle(epoch, samples), self.n_samples)
        self._take_weights(sample_weight)
        check_range("train labels", dataset.train_labels, dataset.n_classes)
        check_range("test labels", dataset.test_labels, dataset.n_classes)
        self._stop = False
        self._part = IMAGES_PER_GRID  # images to deform at once
        self._network = backend.load(network)
        self._weight_decay = weight_decay
        if weight_decay and self._network is not network:
            raise InputError(
                f"weight decay {weight_decay}: expected 0 or a CPU, not {backend.name}"
            )
        drawn = dataset.with_strokes(config.ones_and_sevens, config.seed)
        ranged = drawn.as_inputs(config.input_range)
        self._train_images = backend.put(ranged.train_images)
        self._train_labels = backend.put(dataset.train_labels)
        self._test_images = backend.put(ranged.test_images)
        self._test_labels = backend.put(dataset.test_labels)
        self._shown = self._train_images  # the images of an epoch, deformed or not
        if not config.deformation.is_identity:
            self._background = background_of(ranged.train_images)
            self._shown = backend.put(np.empty_like(dataset.train_images))
            self._maps = backend.put(np.empty((self.n_samples, 2, 2), np.float32))
        self._order = backend.put(np.empty(self.n_samples, np.int32))
        taps = gaussian_taps(config.deformation.sigma)
        backend.reserve(self._network, self._shown, self._train_labels, taps.shape)

    def _take_weights(self, sample_weight: ArrayLike | None) -> None:
        """Puts the weights of the samples where the backend computes, and keeps their sum."""
        self._sample_weight: BackendArray | None = None
        self._total_weight = float(self.n_samples)
        if sample_weight is None:
            return
        if not self.backend.can_weight:
            raise InputError(
                f"sample_weight: the backend {self.backend.name} takes none, expected a CPU backend"
            )
        weights = np.asarray(sample_weight)
        if weights.dtype.kind in "iuf":
            with np.errstate(over="ignore"):  # what becomes infinite is refused
                weights = weights.astype(np.float32)
        weights = check_array("sample_weight", weights, (self.n_samples,))
        check_weights(weights)
        self._total_weight = float(weights.sum(dtype=np.float64))
        if self._total_weight == 0:
            raise InputError("sample_weight: 0 everywhere, expected a greater one")
        self._sample_weight = self.backend.put(weights)

    @property
    def n_samples(self) -> int:
        """The size of the training set, which is the number of samples of an epoch."""
        return len(self.dataset.train_labels)

    def request_stop(self) -> None:
        """Ask `run` to return soon. Signal handlers, observers and other threads may call this."""
        self._stop = True

    def run(self) -> bool:
        """Train until all epochs are done or a stop is requested.

        Returns
        -------
        bool
            Whether all epochs are done. If not, another call continues.

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
        try:
            while self.state.epoch < self.config.epochs:
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
                self.backend.store(self._network, self.state.network)
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
                self._deform()
            with self._timed("training_seconds"):
                self._train()
        self._collect()
        with self._timed("evaluation_seconds"):
            validation_errors = None
            if self.config.validates(state.epoch + 1):
                validation_errors = self._count_errors(self._train_images, self._train_labels, 0)
            test_errors = self._count_errors(self._test_images, self._test_labels, self.n_samples)
        metrics = self._metrics(validation_errors, test_errors)
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
            n_test=len(self.dataset.test_labels),
            training_errors=progress.errors,
            # After an interruption the sum is rounded differently in its last digit.
            loss=float(f"{progress.loss / self._total_weight:.6g}"),
            validation_errors=validation_errors,
            test_errors=test_errors,
            deformation_seconds=round(progress.deformation_seconds, 4),
            training_seconds=round(progress.training_seconds, 4),
            evaluation_seconds=round(progress.evaluation_seconds, 4),
        )

    def _deform(self) -> None:
        """Deform the training set part by part, because a stop waits for the end of a part."""
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
                background=self._background,
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
        images = self._flat(self._shown)
        while (begin := state.progress.samples) < self.n_samples:
            self._report("training", begin, self.n_samples)
            end = min((begin // SEGMENT + 1) * SEGMENT, self.n_samples)
            result = self.backend.train(
                self._network,
                images,
                self._train_labels,
                order[begin:end],
                self._learning_rates(begin),
                functools.partial(self._on_samples, state.progress),
                self.config.target,
                self._sample_weight,
            )
            if not math.isfinite(result.loss):
                raise self._diverged("the loss")
            if self._weight_decay and begin + result.samples == end:
                self._decay_weights(begin, end)

    def _decay_weights(self, begin: int, end: int) -> None:
        """Lets the weights decay as much as in all samples of the segment that has this one."""
        n_samples = end - begin // SEGMENT * SEGMENT
        for weights, rate in zip(self._network.weights, self._learning_rates(begin)):
            weights *= math.exp(-rate * self._weight_decay * n_samples)

    def _middle(self, epoch: int, samples: int) -> float:
        """Samples of the run until the middle of the segment that has this sample of an epoch."""
        begin = samples // SEGMENT * SEGMENT
        return epoch * self.n_samples + (begin + min(begin + SEGMENT, self.n_samples)) / 2

    def _learning_rates(self, samples: int) -> tuple[float, ...]:
        """The rate of each layer in the segment that has this sample of the epoch."""
        middle = self._middle(self.state.epoch, samples)
        return self.config.learning_rates_after(middle, self.n_samples)

    def _on_samples(self, before: EpochProgress, result: TrainingResult) -> bool:
        """Count what a `Backend.train` call has done so far; returns whether to stop."""
        self.state.progress = dataclasses.replace(
            before,
            samples=before.samples + result.samples,
            errors=before.errors + result.errors,
            loss=before.loss + result.loss,
        )
        for observer in self.observers:
            observer.on_progress(self, "training", self.state.progress.samples, self.n_samples)
        return self._stop

    def _count_errors(self, images: BackendArray, labels: BackendArray, done: int) -> int:
        """Counts the errors of a set; `done` images of other sets were counted before."""

        def report() -> None:
            self._report("evaluating", done, self.n_samples + len(self.dataset.test_labels))

        report()
        return self.backend.count_errors(self._network, self._flat(images), labels, report)

    def _flat(self, images: BackendArray) -> BackendArray:
        """A view of images (n, h, w) as inputs of the network (n, h w)."""
        return images.reshape(len(images), self.dataset.n_inputs)

    def _collect(self) -> None:
        """Bring the weights back from the backend, and check that training may continue."""
        self.backend.store(self._network, self.state.network)
        if not self.state.network.is_finite():
            raise self._diverged("a weight")

    def _diverged(self, what: str) -> Diverged:
        last = max(0, self.state.progress.samples - 1)
        return Diverged(
            f"training diverged in epoch {self.state.epoch + 1} at learning rate "
            f"{max(self._learning_rates(last)):.4g}: {what} is not finite; "
            "expected a lower learning rate"
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
