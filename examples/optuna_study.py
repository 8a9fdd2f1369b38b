"""A study by Optuna, which ends bad trials early: an observer reports the error of every epoch.

The error is that of training images that are held out, so nothing is chosen by the test images. It
takes some seconds on the digits embedded in scikit-learn. It needs `pip install optuna`.
"""

from __future__ import annotations

import argparse

import optuna

from mlpcore import Trainer, TrainingConfig, backends, dataset
from mlpcore.training import EpochMetrics, Observer

DATA = dataset.load(name="digits").hold_out(400)


class Pruner(Observer):
    """Tells a trial the held-out error of each epoch, and ends it if Optuna says so."""

    def __init__(self, trial: optuna.Trial):
        self.trial = trial

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        self.trial.report(metrics.test_error, metrics.epoch)
        if self.trial.should_prune():
            raise optuna.TrialPruned


def objective(trial: optuna.Trial, epochs: int = 15) -> float:
    """The lowest held-out error, in percent, of a network with the settings of a trial."""
    config = TrainingConfig(
        hidden_layers=(trial.suggest_int("neurons", 20, 100),),
        epochs=epochs,
        learning_rate=trial.suggest_float("learning_rate", 1e-4, 3e-2, log=True),
        activation="relu",
        loss="cross-entropy",
        init="he",
        decay="linear",
    )
    trainer = Trainer(config, DATA, backends.get("cpu"), observers=[Pruner(trial)])
    trainer.run()
    return trainer.state.best_test_error


def main(trials: int = 20) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=0)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=3)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=trials)
    pruned = [each for each in study.trials if each.state == optuna.trial.TrialState.PRUNED]
    print(f"{len(study.trials)} trials, {len(pruned)} of them ended early")
    print(f"lowest held-out error: {study.best_value:.2f}%, with {study.best_params}")
    return study


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
