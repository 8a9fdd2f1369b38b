"""Plans the runs of the experiment and trains them, one after another."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.commands import runs
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import InUse
from mlpcore.network.architecture import PRESETS, count_parameters
from mlpcore.report.console import Console
from mlpcore.report.tables import NONE, Rows, duration, text_table
from mlpcore.store.run_folder import AlreadyThere, Run, holds_run
from mlpcore.terminal import say
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import PAPER_RECIPE, RECIPES
from mlpcore.training.schedule import PAPER_LEARNING_RATE_END
from mlpcore.training.trainer import StopAfter, Trainer
from table1.records import PAUSE_SECONDS, Record, read_record

#: An epoch is expected to take the median time of so many before it.
RECENT = 20


def plan(
    out: Path, nets: Sequence[str], seeds: Sequence[int], epochs: int, recipe: str, backend: Backend
) -> dict[Path, TrainingConfig]:
    """The settings of every run by its folder: all networks with the first seed come first.

    They are the paper's where it states them, unless the recipe changes them. The learning rate
    takes `epochs` epochs from the paper's first value to its last.
    """
    stem = "" if recipe == PAPER_RECIPE else f"-{recipe}"
    return {
        out / f"{net}{stem}-seed{seed}": TrainingConfig(
            hidden_layers=PRESETS[net],
            epochs=epochs,
            learning_rate_end=PAPER_LEARNING_RATE_END,
            seed=seed,
            backend=backend.name,
            schedule=backend.schedule,
            **RECIPES[recipe].settings_of(PRESETS[net]),
        )
        for seed in seeds
        for net in nets
    }


def with_labels(config: TrainingConfig, similar_labels: tuple[int, ...]) -> TrainingConfig:
    """The settings for data with these similar labels (`Dataset.similar_labels`)."""
    deformation = dataclasses.replace(config.deformation, similar_labels=similar_labels)
    return dataclasses.replace(config, deformation=deformation)


def check_settings(record: Record, planned: TrainingConfig, any_backend: bool) -> None:
    """Raises InputError when a run exists with other settings than planned.

    Its schedule may differ, its labels, which come from the data, and its backend if it may be any.
    """
    found = record.config
    backend = found.backend if any_backend else planned.backend
    wanted = with_labels(planned, found.deformation.similar_labels)
    wanted = dataclasses.replace(wanted, backend=backend, schedule=found.schedule)
    for name, theirs in vars(found).items():
        if theirs != (ours := getattr(wanted, name)):
            raise InputError(
                f"{shown(record.folder)} was started with {name.replace('_', ' ')} {theirs}, "
                f"asked for {ours}: expected the same, or another --out"
            )


def train(
    folder: Path,
    config: TrainingConfig,
    data: Dataset,
    threads: int | None,
    command: str,
    until: int | None = None,
) -> int:
    """Goes on with the run in a folder until an epoch is done, or starts one with these settings.

    A stop by signal n prints `command`, which goes on, and returns 128 + n instead of 0.
    """
    begun = Run.open(folder) if holds_run(folder) else None
    config, state = (begun.config, begun.load()) if begun else (config, None)
    backend = backends.get(config.backend, threads, config.schedule)
    trainer = Trainer(config, data, backend, [StopAfter(until or config.epochs)], state)
    if trainer.state.epoch == until:
        trainer.request_stop()
    run = begun or Run.create(folder, config, data, backend.description, trainer.state)
    with contextlib.closing(run), Console(sys.stdout) as console:
        run.check_data(data)
        return runs.train(run, trainer, console, command)


class Experiment:
    """The planned runs, the `records` of runs that exist, and the folders of runs that `failed`.

    With `any_backend`, runs that exist may have another backend than planned.
    """

    def __init__(self, plan: Mapping[Path, TrainingConfig], any_backend: bool):
        self.plan, self.any_backend = plan, any_backend
        self.records: dict[Path, Record] = {}
        self.failed: set[Path] = set()
        self._ended: set[Path] = set()

    def next_run(self) -> Path | None:
        """Reads and checks all runs; returns the folder of the first that can be trained here."""
        self.records, free = {}, []
        for folder, config in self.plan.items():
            try:
                record = read_record(folder) if holds_run(folder) else None
            except InputError as error:
                self._fail(folder, error)
                continue
            if record:
                self.records[folder] = record
                check_settings(record, config, self.any_backend)
                # A run that was killed between its last epoch and its report needs the report.
                reported = record.finished and (folder / runs.REPORT).exists()
                if reported or record.running:
                    continue
            if folder not in self.failed | self._ended:
                free.append(folder)
        return free[0] if free else None

    def _fail(self, folder: Path, error: InputError) -> None:
        if folder not in self.failed:
            self.failed.add(folder)
            say(printable(f"error: {folder.name}: {error}"), sys.stderr)

    def train_all(self, data: Dataset, command: str, threads: int | None) -> int:
        """Checks all runs, then trains what is left; returns 0, or 128 + n after signal n."""
        summary = DataSummary.of(data)
        for record in self.records.values():
            record.check_data(summary)
        while (folder := self.next_run()) is not None:
            self.show()
            Console(sys.stdout).print(f"{folder.name}:")
            config = with_labels(self.plan[folder], data.similar_labels)
            try:
                if stopped := train(folder, config, data, threads, command):
                    return stopped
                self._ended.add(folder)
            except (InUse, AlreadyThere):  # Another process was faster. Its files will be there.
                time.sleep(PAUSE_SECONDS)
            except InputError as error:
                self._fail(folder, error)
        return 0

    def show(self) -> None:
        """Prints what is done, running and left, and the time left."""
        rows: Rows = [("run", "state", "epochs", "time left")]
        total = 0.0
        for folder, config in self.plan.items():
            record = self.records.get(folder)
            done, left = record.epoch if record else 0, NONE
            state = record.state if record else "not started"
            if folder in self.failed:
                state = "failed" if record else "damaged"
            elif state != "finished":
                # The run's own epochs say how long one takes, else those of another network.
                own = record and record.history
                measured = [record] if record and own else self.records.values()
                seconds = (config.epochs - done) * seconds_per_epoch(config, measured)
                left = duration(seconds) + " (estimate)" * (not own)
                left = "not known yet" if math.isnan(seconds) else left
                total += 0.0 if state == "running" else seconds
            rows.append((folder.name, state, f"{done:,}/{config.epochs:,}", left))
        left = "not known before the first epoch" if math.isnan(total) else duration(total)
        text = f"{text_table(rows)}\ntime left for this process: {left}\n"
        Console(sys.stdout).print(text)


def seconds_per_epoch(config: TrainingConfig, records: Iterable[Record]) -> float:
    """The median of recent epochs, scaled from the network nearest in size; NaN if there are none.

    Training and evaluation take time in proportion to the weights, deformation does not.
    """
    started = [record for record in records if record.history]
    if not started:
        return math.nan

    def scale(record: Record) -> float:
        layer_sizes = record.data.layer_sizes(config.hidden_layers)
        return count_parameters(layer_sizes) / record.n_parameters

    nearest = min(started, key=lambda record: abs(math.log(scale(record))))
    return statistics.median(
        m.deformation_seconds + scale(nearest) * (m.training_seconds + m.evaluation_seconds)
        for m in nearest.history[-RECENT:]
    )
