"""Logs for TensorBoard and MLflow hold the metrics of every epoch."""

import runpy
import sys
from pathlib import Path

import pytest

from mlpcore import Trainer, backends
from mlpcore.errors import InputError
from mlpcore.report import MLflowLogger, TensorBoardLogger
from mlpcore.report.loggers import scalars
from small_runs import DATA, make_config

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def trained(logger, epochs=2, state=None):
    """A trainer that has been run with a logger."""
    trainer = Trainer(
        make_config(epochs=epochs), DATA, backends.get("scalar", 1), [logger], state
    )  # fmt: skip
    assert trainer.run()
    return trainer


@pytest.fixture
def events():
    """Reads the scalars (step, value) by tag from a folder of TensorBoard's."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    def read(folder):
        found = EventAccumulator(str(folder))
        found.Reload()
        return {
            tag: [(e.step, float(make_ndarray(e.tensor_proto))) for e in found.Tensors(tag)]
            for tag in found.Tags()["tensors"]
        }

    return read


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow with a store of its own."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield mlflow
    mlflow.set_tracking_uri(None)


def test_tensorboard(tmp_path, events):
    logger = TensorBoardLogger(tmp_path)
    trainer = trained(logger)
    trained(logger, epochs=3, state=trainer.state)
    found = events(tmp_path)
    for m in trainer.state.history:
        for tag, value in scalars(trainer, m).items():
            assert found[tag][m.epoch - 1] == (m.epoch, pytest.approx(value, rel=1e-6))  # float32
    assert [step for step, _ in found["error/test"]] == [1, 2, 3]


def test_mlflow(mlflow):
    trainer = trained(MLflowLogger())
    assert mlflow.active_run() is None
    with mlflow.start_run() as active:
        trained(MLflowLogger())
        assert mlflow.active_run() is not None
    client = mlflow.MlflowClient()
    runs = client.search_runs(["0"])
    assert len(runs) == 2 and active.info.run_id in {run.info.run_id for run in runs}
    for run in runs:
        assert run.data.params["hidden_layers"] == "(9, 6)"
        assert run.data.params["deformation.sigma"] == "6.0"
        logged = client.get_metric_history(run.info.run_id, "error/validation")
        expected = [(m.epoch, m.validation_error) for m in trainer.state.history]
        assert sorted((m.step, m.value) for m in logged) == expected


def test_examples(tmp_path, monkeypatch, events, mlflow):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "tensorboard_log.py"))["main"](epochs=2)
    for folder in ("logs/width-30", "logs/width-100"):
        assert [step for step, _ in events(folder)["loss"]] == [1, 2]
    runpy.run_path(str(EXAMPLES / "mlflow_log.py"))["main"](epochs=2)
    (run,) = mlflow.MlflowClient().search_runs(["0"])
    assert run.data.params["hidden_layers"] == "(100,)"
    (file,) = mlflow.MlflowClient().list_artifacts(run.info.run_id)
    assert file.path == "learning-curves.png"


@pytest.mark.parametrize(
    ("package", "make"),
    [("tensorboard.summary", lambda: TensorBoardLogger("logs")), ("mlflow", MLflowLogger)],
)
def test_without_the_package(monkeypatch, package, make):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"pip install 'mlpcore\[{package.split('.')[0]}\]'"):
        make()
