"""A training in MLflow, with its settings, its metrics and its learning curves.

It uses scikit-learn's digits and needs `pip install mlflow`; ``mlflow ui`` shows the training.
"""

import argparse
import dataclasses

import mlflow

from mlpcore import Trainer, TrainingConfig, backends, dataset
from mlpcore.report.curves import learning_curves
from mlpcore.training import Observer

NAMES = ("loss", "learning_rate", "training_error", "validation_error", "test_error")


class MLflowLogger(Observer):
    def on_epoch_end(self, trainer, metrics) -> None:
        mlflow.log_metrics({name: getattr(metrics, name) for name in NAMES}, metrics.epoch)


def main(epochs: int = 5) -> None:
    data, backend = dataset.load(name="digits"), backends.get()
    config = TrainingConfig(hidden_layers=(100,), epochs=epochs, learning_rate=0.01)
    with mlflow.start_run(run_name="width-100"):
        mlflow.log_params(dataclasses.asdict(config))
        trainer = Trainer(config, data, backend, [MLflowLogger()])
        trainer.run()
        mlflow.log_figure(learning_curves(trainer.state.history), "learning-curves.png")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
