"""`mlpcore committee`: many networks, trained here one after another or on a cluster."""

import argparse
import contextlib
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.checks import check_whole
from mlpcore.commands import runs, train
from mlpcore.commands.options import (
    command_main,
    command_parser,
    command_text,
    whole_number,
)
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from mlpcore.inference import TrainedClassifier
from mlpcore.report.committee import JudgedCommittee, committee_figures, committee_report
from mlpcore.report.console import MembersConsole, ProgressBar
from mlpcore.report.tables import text_table
from mlpcore.store.committee import CommitteeFolder, holds_committee, plan, with_members
from mlpcore.store.run_folder import check_output
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.trainer import Trainer

TEXT = """\
Trains networks of several seeds and architectures, and averages their
outputs. Members, settings and seeds are fixed before anything is trained.
Ctrl-C stops; the same command resumes. The members' seeds are --seed,
--seed + 1, and so on."""


def parse(argv: Sequence[str]) -> train.Options:
    """The options that were given."""
    parser = command_parser(
        "committee",
        "--out DIR [options]",
        TEXT,
        "--arch net1 net2 --members 3 --out runs/six",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    members = "members of each architecture (1)"
    add("--members", type=whole_number, default=1, metavar="K", help=members)
    out = "a new folder, or that of a stopped committee to resume"
    add("--out", required=True, metavar="DIR", help=out)
    cluster = parser.add_mutually_exclusive_group()
    workers = "train on N processes of this machine at once, with Dask"
    cluster.add_argument("--workers", type=whole_number, metavar="N", help=workers)
    scheduler = (
        "train on a running Dask cluster: tcp://HOST:8786, or tls://. Anyone who reaches its "
        "port can run code there: use TLS on networks that others share"
    )
    cluster.add_argument("--scheduler", metavar="ADDRESS", help=scheduler)
    train.add_settings(parser, argv, n_archs="+")
    options = vars(parser.parse_args(argv))
    check_whole("--workers", options.get("workers", 1), 1, 1000)
    return options | {"command": command_text("committee", *argv)}


def on_cluster(options: train.Options) -> bool:
    """Whether members are trained by Dask; an InputError unless it is there, and its scheduler."""
    if "workers" not in options and "scheduler" not in options:
        return False
    try:
        from mlpcore.cluster import check_scheduler
    except ImportError as error:
        raise InputError(
            f"a cluster needs the package {error.name}, which is not installed: install it with "
            "pip install 'mlpcore[cluster]'"
        ) from None
    if "scheduler" in options:
        check_scheduler(options["scheduler"])
    return True


def train_here(committee: CommitteeFolder, data: Dataset, options: train.Options) -> int:
    """Trains the members one after another; returns the exit status."""
    first = committee.members[0].config
    backend = backends.get(first.backend, options.get("threads"), first.schedule)
    for number, member in enumerate(committee.members, 1):
        config, n = member.config, len(committee.members)
        place = f"member {number} of {n}: {member.name}, seed {config.seed}"
        run = committee.open_run(member, data, backend.description)
        with contextlib.closing(run), ProgressBar(sys.stdout) as console:
            state = run.load()
            if state.epoch == config.epochs:
                console.print(f"{place}, is trained")
                continue
            console.print(f"\n{place}")
            trainer = Trainer(config, data, backend, state=state)
            status = runs.train(run, trainer, data, console, options["command"])
            if status and state.epoch == config.epochs:
                console.print("stopped after this member. To resume:")
                console.print_whole(f"  {options['command']}")
        if status:
            return status
    return 0


def train_on_cluster(committee: CommitteeFolder, data: Dataset, options: train.Options) -> int:
    """Trains the members at once on a cluster; returns the exit status."""
    from mlpcore.cluster import train_members

    console = MembersConsole(sys.stdout, committee.members)
    names = "scheduler", "workers", "threads"
    given = {name: options[name] for name in names if name in options}
    with console:
        stopped_by = train_members(committee, data, console, **given)
        if not stopped_by:
            return 0
        console.print("stopped; what was computed before is saved. To resume:")
        console.print_whole(f"  {options['command']}")
    return 128 + stopped_by


def present(committee: CommitteeFolder, data: Dataset, backend: Backend) -> None:
    """Prints the result of a trained committee, and writes its report with figures.

    Its members and their mean are judged on the training and on the test images.
    """
    networks = [TrainedNetwork.read(folder) for folder in with_members([committee.folder])]
    classifier = TrainedClassifier(networks, backend)
    whole_validation, validations = classifier.evaluate(data.train_set, data.train_labels)
    whole_test, tests = classifier.evaluate(data.test_set, data.test_labels)
    names = [*(member.name for member in committee.members), f"committee of {len(networks)}"]
    judged = JudgedCommittee(names, [*validations, whole_validation], [*tests, whole_test], data)
    text = functools.partial(committee_report, committee, judged, backend.description)
    with ProgressBar(sys.stdout) as console:
        console.print()
        console.print(text_table(judged.table()))
        console.print(judged.comparison())
        runs.write_report(committee.folder, committee_figures(judged), text, console)


def train_committee(options: train.Options) -> int:
    """Returns the exit status: 0 when trained to the end, 128 + n for signal n."""
    train_members = train_on_cluster if on_cluster(options) else train_here
    folder, archs = Path(options["out"]), options.get("arch", ["net1"])
    name = options.get("backend", "auto")
    if holds_committee(folder):
        begun = CommitteeFolder.open(folder)
        if "backend" not in options:  # another machine may have another best one
            name = begun.members[0].config.backend
    else:
        check_output(folder)
    # Workers may have a backend that cannot run here.
    is_absent = train_members is train_on_cluster and backends.available().get(name)
    judging = backends.get("cpu" if is_absent else name, options.get("threads"))
    training = name if is_absent else judging.name
    configs = [train.make_config(options | {"arch": arch}, training) for arch in archs]
    plan(configs, options["members"])  # refuses bad ones before data are read
    data = train.load_data(options)
    members = plan([train.fitted(each, options, data) for each in configs], options["members"])
    committee = CommitteeFolder(folder, DataSummary.of(data), members)
    with committee.locked():
        status = train_members(committee, data, options)
        if not status:
            present(committee, data, judging)
    return status


main = command_main(
    parse, train_committee, "a smaller --arch or less data", "stopped; the same command resumes"
)
