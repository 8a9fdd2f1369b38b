"""Training shown by TensorBoard: ``tensorboard --logdir logs`` after, or while, it runs.

It uses scikit-learn's digits and takes a few seconds. It needs `pip install tensorboard`.
"""

import argparse

from tensorboard.summary import Writer

from mlpcore import Trainer, TrainingConfig, backends, dataset
from mlpcore.training import Observer


class TensorBoardLogger(Observer):
    def __init__(self, folder: str) -> None:
        self.writer = Writer(folder)

    def on_epoch_end(self, trainer, metrics) -> None:
        for name in ("loss", "learning_rate", "training_error", "validation_error", "test_error"):
            self.writer.add_scalar(name, getattr(metrics, name), metrics.epoch)
        self.writer.flush()


def main(folder: str = "logs", epochs: int = 5) -> None:
    data, backend = dataset.load(name="digits"), backends.get()
    for width in (30, 100):
        config = TrainingConfig(hidden_layers=(width,), epochs=epochs, learning_rate=0.01)
        logger = TensorBoardLogger(f"{folder}/width-{width}")
        Trainer(config, data, backend, [logger]).run()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
