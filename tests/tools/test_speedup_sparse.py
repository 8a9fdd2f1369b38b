"""The benchmark of rectifiers: what they were trained on, their active inputs, their floor."""

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.data import dataset
from mlpcore.network import Network
from speed import floors, limits, trained
from speed.command import main
from speed.results import Report
from speed.timing import Settings

#: Of the embedded digits.
EPOCH = 1442


@pytest.fixture
def embedded(monkeypatch):
    monkeypatch.setattr(trained, "local_digits", lambda: dataset.load(name="digits"))


def test_the_floor_of_sparse_steps_by_hand():
    activity = floors.Activity(sample=(3, 1), block=(7, 3), samples=4)
    work = floors.sparse_step((9, 4, 2), activity)
    passes, updates = work.traffic
    assert (passes.moved, passes.resident, passes.copied) == (8 * 2 * 2, 4 * 4 * 2, False)
    weights = 8 * 4 + 4 * 2  # of the block's rows
    assert (updates.moved, updates.resident, updates.copied) == (8 * weights / 4, 4 * weights, True)
    assert work.multiply_adds == 2 * 4 * 4 + 3 * 2 * 2
    assert work.updates == 4 * 4 + 2 * 2


def test_if_all_is_active_the_floor_differs_from_the_dense_one_by_the_traffic_of_updates():
    sizes = (841, 1000, 500, 10)
    sparse = floors.sparse_step(sizes, floors.Activity(sizes[:-1], sizes[:-1], 32))
    dense = floors.step(sizes, 1.0, None)
    assert sparse.traffic[:1] == dense.traffic
    assert sparse.multiply_adds == dense.multiply_adds and sparse.updates == dense.updates


def test_active_inputs_are_counted_in_samples_and_in_blocks():
    """Every neuron is active in one sample in 16; some never, some always."""
    network = Network((16, 20, 3), 0, "relu", "cross-entropy", "he")
    weights, biases = network.weights[0], network.biases[0]
    weights[...] = np.eye(20, 16)
    biases[...] = [0] * 16 + [-1, -1, 1, 1]
    images = np.tile(np.eye(16, dtype=np.float32), (4, 1))
    images[32:, 8:] = 0  # half of the second block's samples show nothing
    activity = trained.count_active(network, images, backends.get("scalar"))
    assert activity.sample == (0.75, 2.75) and activity.block == (12, 14)
    assert activity.samples == 32


def test_without_mnist_the_embedded_digits_serve(monkeypatch, tmp_path):
    monkeypatch.setenv("MLPCORE_DATA", str(tmp_path))
    assert trained.local_digits().name == dataset.EMBEDDED


def test_three_epochs_of_training(embedded):
    """Then come samples of the fourth at its rate: 27 of 30 epochs are left."""
    few = trained.Trained((12,), seconds=600.0)
    assert few.samples == 3 * EPOCH and few.rate == pytest.approx(0.01 * 27 / 30)
    assert few.network.activation == "relu" and few.network.loss == "cross-entropy"
    assert few.flat_images.min() == 0 and len(few.flat_images) == EPOCH
    assert 0 < few.activity.sample[1] < 12 and few.foreground < 0.5
    errors = backends.get("scalar").count_errors(few.network, few.flat_images, few.labels)
    assert errors < 0.5 * EPOCH  # guessing has 0.9


def test_seconds_bound_the_training(embedded):
    few = trained.Trained((12,), seconds=0.0)
    assert few.samples <= EPOCH and f"on {few.samples:,} samples" in few.description()


def test_what_sparsity_is_worth(embedded, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(limits, "MOST", 1 << 22)
    path = tmp_path / "speed.json"
    keys = "step,step-sparse,step-relu-dense"
    arguments = ["--arch", "150,8", "--backend", "scalar", "--threads", "1", "--routine", keys]
    settings = Settings(seconds=1e-6, repeats=1, training=0.0)
    assert main([*arguments, "--json", str(path)], settings) == 0
    out, _ = capsys.readouterr()
    assert "150,8: time of other steps over that of On-line step, rectifiers, sparse" in out
    assert out.count(f"deformed, of {dataset.EMBEDDED}") == 1
    tanh, sparse, dense = Report.read(path).architectures[0].routines
    assert not tanh.note and sparse.note == dense.note != ""
    assert all(line.timing and line.floor for row in (sparse, dense) for line in row.results)
