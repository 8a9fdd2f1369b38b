"""The same answers at every revision: of a run that goes on, and of networks.

The networks have the same weights, and see the digits in two ranges.
"""

import json
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from mlpcore import Trainer, backends
from mlpcore.__main__ import main
from mlpcore.data.dataset import EMBEDDED
from mlpcore.data.pixels import BACKGROUNDS, DIGITS_PIXELS
from mlpcore.store.documents import to_metadata
from mlpcore.store.run_folder import Run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, weights_sha256, write_network
from test_golden_bits import DIGITS, EXPECTED, sha256

FIXTURES = Path(__file__).parent / "fixtures"


def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path):
    folder = shutil.copytree(FIXTURES / "run", tmp_path / "run")
    with closing(Run.open(folder)) as run:
        run.check_data(DIGITS)
        state = run.load()
        assert (state.epoch, state.progress.samples) == (2, 512)
        backend = backends.get(run.config.backend, 1, run.config.schedule)
        assert Trainer(run.config, DIGITS, backend, [run], state).run()
    assert weights_sha256(state.network) == EXPECTED["resumed run"]
    best = TrainedNetwork.read(folder)
    assert weights_sha256(best.network) == EXPECTED["best of resumed run"]


@pytest.fixture
def networks(tmp_path):
    network, _ = read_network(FIXTURES / "weights.safetensors")
    paths = [tmp_path / f"{name}.safetensors" for name in BACKGROUNDS]
    for path, input_range in zip(paths, BACKGROUNDS):
        pixels = structs.replace(DIGITS_PIXELS, input_range=input_range)
        write_network(path, network, to_metadata(data=EMBEDDED, pixels=pixels))
    return paths


@pytest.mark.parametrize("copies", [0, 3])
def test_confusions(networks, tmp_path, copies):
    options = ["--dataset", "digits", "--backend", "scalar", "--json", str(tmp_path / "json")]
    options += ["--copies", str(copies), "--seed", "2"] if copies else []
    assert main(["evaluate", *map(str, networks), *options]) == 0
    result = json.loads((tmp_path / "json").read_text())
    found = [*result["networks"], result["committee"]]
    expected = EXPECTED["confusions"][f"{copies} copies"]
    assert [each["errors"] for each in found] == expected["errors"]
    confusions = np.array([each["confusion"] for each in found], np.int64)
    assert sha256(confusions) == expected["sha256"]
