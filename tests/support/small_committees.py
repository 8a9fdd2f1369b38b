"""Small committees for the tests of clusters, and the weights that they must have."""

from mlpcore import backends
from mlpcore.data.summary import DataSummary
from mlpcore.store.committee import CommitteeFolder, plan
from mlpcore.training.trainer import Trainer
from small_runs import assert_same_result, load_run, make_config


class Progress:
    """Keeps what it is told, and calls a function whenever a state is saved."""

    def __init__(self, on_saved=lambda count: None):
        self.notes, self.epochs, self.on_saved = [], [], on_saved

    def note(self, text):
        self.notes.append(text)

    def saved(self, name, state, worker):
        self.epochs.append((name, state.epoch))
        self.on_saved(len(self.epochs))


def make_committee(folder, data, widths=(None, 2, 4), n=1, **changes):
    backend = backends.get("auto", 1)
    changes = {"backend": backend.name, "schedule": backend.schedule} | changes
    members = plan(make_config(**changes), widths, n)
    committee = CommitteeFolder(folder, DataSummary.of(data), members)
    committee.write()
    return committee


def assert_undisturbed(committee, data):
    """Every state on disk is that of a training by one process, without tasks."""
    for member in committee.members:
        trainer = Trainer(member.config, data, backends.get(member.config.backend, 1))
        assert trainer.run()
        assert_same_result(load_run(committee.run_folder(member)), trainer.state)
