"""Files of revision 7a385d4 are still read: a stopped run, weights, a pickled classifier."""

import json
import pickle
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from mlpcore import Trainer, backends, dataset
from mlpcore.estimators.parameters import PAPER
from mlpcore.store.run_folder import Run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import weights_sha256
from test_golden_bits import EXPECTED, sha256

FIXTURES = Path(__file__).parent / "fixtures"


def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path):
    folder = shutil.copytree(FIXTURES / "run", tmp_path / "run")
    with closing(Run.open(folder)) as run:
        data = dataset.load(name="digits")
        run.check_data(data)
        state = run.load()
        assert (state.epoch, state.progress.samples) == (2, 512)
        backend = backends.get(run.config.backend, 1, run.config.schedule)
        trainer = Trainer(run.config, data, backend, [run], state)
        assert trainer.run()
    assert weights_sha256(trainer.state.network) == EXPECTED["resumed run"]
    best = TrainedNetwork.read(folder)
    assert weights_sha256(best.network) == EXPECTED["best of resumed run"]
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [each["epoch"] for each in metrics] == [1, 2, 3, 4]


def test_weights_predict_as_they_did():
    trained = TrainedNetwork.read(FIXTURES / "weights.safetensors")
    images = dataset.load(name="digits").test_images
    outputs = backends.get("scalar").predict(trained.network, images.reshape(len(images), -1))
    classes = outputs.argmax(axis=1).astype(np.uint8)
    assert sha256(classes) == EXPECTED["predictions of weights"]


def test_a_pickled_classifier_predicts_and_goes_on():
    classifier = pickle.loads((FIXTURES / "classifier.pickle").read_bytes())
    X, y = load_digits(return_X_y=True)
    X = X / 8 - 1
    classes = classifier.predict(X[600:]).astype(np.uint8)
    assert sha256(classes) == EXPECTED["predictions of classifier"]
    assert PAPER.items() <= classifier.get_params().items()
    before = classifier.n_iter_
    assert classifier.partial_fit(X[:50], y[:50]).n_iter_ == before + 1
