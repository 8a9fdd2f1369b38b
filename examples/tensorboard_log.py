"""A training that TensorBoard shows: ``tensorboard --logdir logs`` after, or while, it runs.

It uses the digits embedded in scikit-learn and takes a few seconds.
"""

from __future__ import annotations

from mlpcore import Trainer, TrainingConfig, backends, dataset
from mlpcore.report import ProgressBar, TensorBoardLogger


def main(folder: str = "logs", epochs: int = 5) -> None:
    data, backend = dataset.load(name="digits"), backends.get()
    for width in (30, 100):
        config = TrainingConfig(hidden_layers=(width,), epochs=epochs, learning_rate=0.01)
        observers = [ProgressBar(), TensorBoardLogger(f"{folder}/width-{width}")]
        Trainer(config, data, backend, observers).run()


if __name__ == "__main__":
    main()
