"""Small committees for the tests of clusters, and the weights that they must have."""

from mlpcore import backends
from mlpcore.data.summary import DataSummary
from mlpcore.store.committee import CommitteeFolder, plan
from mlpcore.training.trainer import Trainer
from small_runs import assert_same_result, load_run, make_config


class Follower:
    """Counts, and calls a function at every result that has come home."""

    def __init__(self, at_home=lambda count: None):
        self.lines, self.epochs, self.at_home, self.count = [], [], at_home, 0

    def say(self, text):
        self.lines.append(text)

    def epoch(self, *event):
        self.epochs.append(event)

    def home(self, name, state, worker):
        self.count += 1
        self.at_home(self.count)


def make_committee(folder, data, widths=(None, 2, 4), n=1, **changes):
    backend = backends.get("auto", 1)
    config = make_config(backend=backend.name, schedule=backend.schedule, **changes)
    committee = CommitteeFolder(folder, DataSummary.of(data), plan(config, widths, n))
    committee.write()
    return committee


def assert_undisturbed(committee, data):
    """Every state on disk is that of a training by one process, without tasks."""
    for member in committee.members:
        trainer = Trainer(member.config, data, backends.get(member.config.backend, 1))
        assert trainer.run()
        assert_same_result(load_run(committee.run_folder(member)), trainer.state)
