"""`mlpcore committee`: many networks, trained here one after another or on a cluster."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.checks import check_whole
from mlpcore.cluster import check_scheduler, require_distributed, train_members
from mlpcore.commands import runs, train
from mlpcore.commands.options import (
    command_parser,
    command_text,
    folder_name,
    run_tool,
    whole_number,
)
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.data.width import check_width
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write
from mlpcore.inference import TrainedClassifier
from mlpcore.report.committee import (
    Judged,
    committee_figures,
    committee_report,
    committee_table,
    comparison_line,
)
from mlpcore.report.console import Console
from mlpcore.report.figures import write_figures
from mlpcore.report.members import MembersDisplay
from mlpcore.store.committee import CommitteeFolder, Member, holds_committee, plan, with_members
from mlpcore.store.run_folder import Run, check_output, holds_run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.config import TrainingConfig

TEXT = """\
Trains networks that see digits of different widths, and averages them. The
members, their settings and seeds are fixed before anything is trained. Ctrl-C
stops at any time; the same command goes on. All options of mlpcore train that
are settings, data or a backend hold for every member: --arch, --epochs, --lr,
--sigma ...; --seed is that of the first member, the next has the next seed."""

#: The most processes of a local cluster.
MAX_WORKERS = 1000

#: The options of `mlpcore train` that have no meaning here, and what has.
OTHERS = {
    "minutes": "--epochs",
    "width": "--widths",
    "resume": "the same command as at first",
}


def width_list(text: str) -> list[int | None]:
    """The type of --widths: whole numbers, or the word original, with commas in between."""
    try:
        return [None if part == "original" else int(part) for part in text.split(",")]
    except ValueError:
        expected = "expected widths such as original,12,16"
        raise argparse.ArgumentTypeError(f"{text!r}, {expected}") from None


def parse(argv: Sequence[str] | None) -> tuple[argparse.Namespace, train.Options]:
    """The options of this command, and those of `mlpcore train` that were given."""
    parser = command_parser(
        "committee",
        "--out DIR [options]",
        TEXT,
        "--widths original,10,12,14,16,18,20 --out runs/seven",
    )
    add = parser.add_argument
    widths = "original, or the ink brought to so many pixels (original)"
    add("--widths", type=width_list, default=[None], metavar="N,N,...", help=widths)
    members = "members for each width (1)"
    add("--members", type=whole_number, default=1, metavar="K", help=members)
    out = "folder of the committee, which may hold a stopped one"
    add("--out", type=folder_name, required=True, metavar="DIR", help=out)
    workers = "train on N processes of this machine at once; needs dask.distributed"
    add("--workers", type=whole_number, metavar="N", help=workers)
    scheduler = (
        "train on a running Dask cluster: tcp://HOST:8786, or tls://. Whoever reaches its port "
        "can run code there: use TLS on networks that others share"
    )
    add("--scheduler", metavar="ADDRESS", help=scheduler)
    add("--mixed", action="store_true", help="let workers use other instruction sets")
    options, rest = parser.parse_known_args(argv)
    settings = vars(train.parse(rest))
    for name, instead in OTHERS.items():
        if name in settings:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} of a committee: expected {instead}")
    if options.workers is not None:
        check_whole("--workers", options.workers, 1, MAX_WORKERS)
        if options.scheduler is not None:
            raise InputError("--workers together with --scheduler: expected one of them")
    elif options.scheduler is None and options.mixed:
        raise InputError("--mixed without a cluster: expected --scheduler or --workers")
    return options, settings


@dataclass(frozen=True)
class Computing:
    """What trains the members, which may be on a cluster alone, and what judges them here."""

    name: str
    schedule: str | None
    here: Backend

    @classmethod
    def of(
        cls, settings: train.Options, begun: CommitteeFolder | None, on_cluster: bool
    ) -> Computing:
        """That of the options; a committee that has begun keeps its own."""
        name, schedule = settings.get("backend", "auto"), None
        if begun and "backend" not in settings:
            name, schedule = begun.members[0].config.backend, begun.members[0].config.schedule
        threads = settings.get("threads")
        if on_cluster and backends.available().get(name):  # which says why it cannot run here
            return cls(
                name, schedule or backends.default_schedule(name), backends.get("cpu", threads)
            )
        here = backends.get(name, threads, schedule)
        return cls(here.name, here.schedule, here)

    def config(self, *arguments: Any) -> TrainingConfig:
        """The settings of a member, as `train.make_config` makes them."""
        config = train.make_config(*arguments)
        return dataclasses.replace(config, backend=self.name, schedule=self.schedule)


def begin(
    options: argparse.Namespace, settings: train.Options, console: Console
) -> tuple[CommitteeFolder, Dataset, Backend]:
    """The committee in the folder, new or as it was begun, with its data and what judges it."""
    folder = Path(options.out)
    begun = CommitteeFolder.open(folder) if holds_committee(folder) else None
    computing = Computing.of(settings, begun, bool(options.workers or options.scheduler))
    here = computing.here
    plan(computing.config(settings, here), options.widths, options.members)  # refuses at once
    if begun is None:
        check_output(folder)
    data = dataset.load(settings.get("data"), name=settings.get("dataset"))
    if "hold_out" in settings:
        data = data.hold_out(settings["hold_out"])
    if not len(data.test_labels):
        raise InputError("no test images to judge a committee on: expected --hold-out N")
    epochs = train.default_epochs(settings, here, data, console)
    config = computing.config(settings, here, data.similar_labels, epochs)
    members = plan(config, options.widths, options.members)
    for width in options.widths:
        if width is not None:
            check_width(width, data.image_shape[1])
    if begun is None:
        committee = CommitteeFolder(folder, DataSummary.of(data), members, options.mixed)
        committee.write()
        return committee, data, here
    begun.check_same(members, data)
    if options.mixed and not begun.mixed:
        begun = dataclasses.replace(begun, mixed=True)
        begun.write()
    return begun, data, here


def train_here(
    committee: CommitteeFolder, data: Dataset, threads: int | None, out: TextIO, command: str
) -> int:
    """Trains the members one after another; returns the exit status."""
    for number, member in enumerate(committee.members, 1):
        folder, config = committee.run_folder(member), member.config
        place = f"member {number} of {len(committee.members)}: {member.name}, seed {config.seed}"
        with Console(out) as console:
            if holds_run(folder) and is_trained(committee, member):
                console.print(f"{place}, is trained")
                continue
            console.print(f"\n{place}")
            if holds_run(folder):
                status = runs.resume(folder, console, command, threads, data=data)
            else:
                backend = backends.get(config.backend, threads, config.schedule)
                status = runs.start(folder, config, data, backend, console, command)
        if status:
            return status
    return 0


def train_on_cluster(
    committee: CommitteeFolder,
    data: Dataset,
    options: argparse.Namespace,
    threads: int | None,
    console: Console,
) -> int:
    """Trains the members at once on a cluster; returns the exit status."""
    with MembersDisplay(console, committee.members) as display:
        number = train_members(
            committee,
            data,
            display,
            scheduler=options.scheduler,
            workers=options.workers or 1,
            threads=threads,
            mixed=options.mixed,
        )
    return 128 + number if number else 0


def all_trained(committee: CommitteeFolder) -> bool:
    """Whether every member has all its epochs."""
    return all(
        holds_run(committee.run_folder(member)) and is_trained(committee, member)
        for member in committee.members
    )


def is_trained(committee: CommitteeFolder, member: Member) -> bool:
    """Whether a member, whose run exists, has all its epochs; an InputError if it is damaged."""
    committee.check_run(member)
    with contextlib.closing(Run.open(committee.run_folder(member), to_train=False)) as run:
        return run.load().epoch == member.config.epochs


def judge(
    committee: CommitteeFolder, data: Dataset, backend: Backend
) -> tuple[list[Judged], Judged]:
    """The trained members and the committee, on the training and on the test images."""
    networks = [TrainedNetwork.read(folder) for folder in with_members([committee.folder])]
    classifier = TrainedClassifier(networks, backend)
    whole_validation, validation = classifier.evaluate(data.train_images, data.train_labels)
    whole_test, test = classifier.evaluate(data.test_images, data.test_labels)
    names = [member.name for member in committee.members]
    members = [Judged(*each) for each in zip(names, validation, test)]
    name, n = f"committee of {len(members)}", len(members)
    return members, Judged(name, whole_validation, whole_test, n)


def present(committee: CommitteeFolder, data: Dataset, backend: Backend, console: Console) -> None:
    """Prints the result of a trained committee, and writes its report with figures."""
    members, whole = judge(committee, data, backend)
    console.print()
    console.print_table(committee_table(members, whole, data.held_out))
    console.print(comparison_line(members, whole, data.held_out))
    files: list[str] = []
    try:
        figures = committee_figures(data.test_images, members, whole, data.name, data.held_out)
        paths = write_figures(committee.folder / "figures", figures)
        files = [path.relative_to(committee.folder).as_posix() for path in paths]
    except Exception as error:  # no failure of a figure may hide a result
        reason = " ".join(str(error).split())
        console.print(f"note: no figures are drawn: {type(error).__name__}: {reason}")
    text = committee_report(committee, members, whole, backend.description, files)
    atomic_write(committee.folder / runs.REPORT, text.encode(errors="replace"))
    console.print(f"report: {shown(committee.folder / runs.REPORT)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 when trained to the end, 2 for bad input, 128 + n for signal n."""

    def command() -> int:
        options, settings = parse(argv)
        again = command_text("committee", *(sys.argv[2:] if argv is None else argv))
        with Console(sys.stdout) as console:
            if options.workers:
                require_distributed()
            if options.scheduler:
                check_scheduler(options.scheduler)
            committee, data, backend = begin(options, settings, console)
            threads = settings.get("threads")
            if (options.workers or options.scheduler) and not all_trained(committee):
                status = train_on_cluster(committee, data, options, threads, console)
                if status:
                    console.print("stopped; what came home is saved. To go on:")
                    console.print_whole(f"  {again}")
            else:
                status = train_here(committee, data, threads, sys.stdout, again)
            if not status:
                present(committee, data, backend, console)
            return status

    stopped = "stopped; the same command goes on"
    return run_tool(command, "a smaller --arch or less data", stopped)
