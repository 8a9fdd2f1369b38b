"""A training in MLflow, with its settings, its metrics and its learning curves.

It uses the digits embedded in scikit-learn and takes a few seconds. ``mlflow ui`` shows it.
"""

from __future__ import annotations

import mlflow

from mlpcore import Trainer, TrainingConfig, backends, dataset
from mlpcore.report import MLflowLogger, ProgressBar
from mlpcore.report.curves import learning_curves


def main(epochs: int = 5) -> None:
    data, backend = dataset.load(name="digits"), backends.get()
    config = TrainingConfig(hidden_layers=(100,), epochs=epochs, learning_rate=0.01)
    with mlflow.start_run(run_name="width-100"):
        trainer = Trainer(config, data, backend, [ProgressBar(), MLflowLogger()])
        trainer.run()
        mlflow.log_figure(learning_curves(trainer.state.history), "learning-curves.png")


if __name__ == "__main__":
    main()
