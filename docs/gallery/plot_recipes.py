"""
Recipes compared
================

Three sets of settings: today's rectifiers, the paper's, and a change of the paper's. See how fast
each of them learns.
"""

import dataclasses

import matplotlib.pyplot as plt

from mlpcore import Trainer, TrainingConfig, backends, dataset
from mlpcore.training.recipes import RECIPES

data = dataset.load(download=False)  # MNIST where it is found
few = dataclasses.replace(
    data, train_images=data.train_images[:1400], train_labels=data.train_labels[:1400]
)
backend = backends.get("cpu")

# %%
# The same network, the same data, the same deformations and the same order of the samples.
hidden, histories = (100, 50), {}
for name, recipe in RECIPES.items():
    config = TrainingConfig(hidden_layers=hidden, epochs=25, seed=0, **recipe.settings_of(hidden))
    trainer = Trainer(config, few, backend)
    trainer.run()
    histories[name] = trainer.state.history

figure, axes = plt.subplots()
for name, history in histories.items():
    epochs = [metrics.epoch for metrics in history]
    axes.semilogy(epochs, [metrics.test_error for metrics in history], label=name)
    last = history[-1]
    print(
        f"{name:>10}: test error {last.test_error:.2f} % in {sum(m.seconds for m in history):.1f} s"
    )
axes.set(xlabel="epoch", ylabel="test error (%)")
axes.set_title(f"841-100-50-10 on 1,400 images of {data.name}")
axes.set_yticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
axes.legend()
plt.show()

# %%
# What the recipes are, where they differ from `TrainingConfig`'s defaults:
for name, recipe in RECIPES.items():
    print(f"{name}: {recipe.settings_of(hidden)}")
