"""Trains what is left of the experiment, one run after another."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from mlpcore import backends
from mlpcore.commands import runs
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from mlpcore.files import InUse
from mlpcore.report.console import Console
from mlpcore.report.tables import text_table
from mlpcore.store.run_folder import AlreadyThere
from mlpcore.training.trainer import Diverged
from table1.experiment import Experiment, Planned, check_data
from table1.progress import status
from table1.records import PAUSE_SECONDS, Record


@dataclass
class Work:
    """The runs of an experiment.

    Attributes
    ----------
    backend
        The name of that of new runs.
    threads
        That compute; None for as many as there are cores.
    records
        By the names of the runs, as `look` found them.
    problems
        A line for each run that cannot go on; the others do.
    ended
        The names of runs that have come to their end here, with a report if one could be written.
    """

    experiment: Experiment
    backend: str
    threads: int | None = None
    records: dict[str, Record] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def look(self) -> Planned | None:
        """Reads what there is, and returns the first run that this process can train.

        Raises
        ------
        InputError
            When a run has other settings than those asked for.
        """
        first = None
        self.records.clear()
        for run in self.experiment.runs:
            failed = run.name in self.problems
            try:
                record = run.read()
            except InputError as error:
                if not failed:
                    self._fail(run, error)
                continue
            if record:
                self.records[run.name] = record
                self.experiment.check(run, record)
            if first is None and not failed and self._can_train(run, record):
                first = run
        return first

    def _can_train(self, run: Planned, record: Record | None) -> bool:
        if record is None:
            return True
        if record.running or run.name in self.ended:
            return False
        if record.finished and (run.folder / runs.REPORT).exists():
            return False
        try:
            backends.get(record.config.backend, self.threads, record.config.schedule)
        except InputError as error:
            self._fail(run, InputError(f"{run.name} cannot go on: {error}"))
            return False
        return True

    def _fail(self, run: Planned, error: InputError) -> None:
        self.problems[run.name] = str(error)
        print(f"error: {error}", file=sys.stderr, flush=True)

    def train(self, data: Dataset, command: str) -> int:
        """Trains until nothing is left that this process can train.

        Parameters
        ----------
        command
            What to type to go on, said after a stop.

        Returns
        -------
        0, or 128 + n when signal n stopped it.

        Raises
        ------
        InputError
            When a run has other settings or data, before any is trained, or cannot be written.
        """
        summary = DataSummary.of(data)
        self.look()
        for known in self.experiment.runs:
            if known.name in self.records:
                check_data(known, self.records[known.name], summary)
        while (run := self.look()) is not None:
            self.show()
            stopped = 0
            try:
                stopped = self._train(run, data, command)
                self.ended.add(run.name)
            except (InUse, AlreadyThere):  # another process was faster; its files will be there
                time.sleep(PAUSE_SECONDS)
            except Diverged as error:
                self._fail(run, error)
            if stopped:
                return stopped
        return 0

    def _train(self, run: Planned, data: Dataset, command: str) -> int:
        print(f"{run.name}:", flush=True)
        with Console(sys.stdout) as console:
            if run.name in self.records:
                return runs.resume(run.folder, console, command, self.threads, data=data)
            backend = backends.get(self.backend, self.threads)
            config = self.experiment.config(
                run, data.similar_labels, backend.name, backend.schedule
            )
            return runs.start(run.folder, config, data, backend, console, command)

    def show(self) -> None:
        """Prints what is done, running and left."""
        rows, total = status(self.experiment, self.records, self.problems)
        print(f"{text_table(rows)}\n{total}\n", flush=True)

    @property
    def status(self) -> int:
        """The exit status: 2 when a run has failed, 1 when one is not finished, else 0."""
        if self.problems:
            return 2
        return 1 if any(not record.finished for record in self.records.values()) else 0
