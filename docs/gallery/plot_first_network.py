"""
A first network
===============

Train a network of 100 hidden neurons on the digits that come with scikit-learn, watch its error
fall, and look at its guesses.
"""

import matplotlib.pyplot as plt
import numpy as np

from mlpcore import Trainer, TrainingConfig, backends, dataset, evaluate
from mlpcore.training.recipes import RECIPES

data = dataset.load(name="digits")
print(f"{len(data.train_images):,} images to train on, {len(data.test_images):,} to test on")

# %%
# A recipe is a set of settings that belong together. "modern" is the one that ``mlpcore train``
# uses: rectifiers, softmax outputs, a learning rate that falls to 0.
hidden = (100,)
settings = RECIPES["modern"].settings_of(hidden)
config = TrainingConfig(hidden_layers=hidden, epochs=40, seed=1, **settings)
backend = backends.get("cpu")
trainer = Trainer(config, data, backend)
print("trained to the end:", trainer.run())

# %%
# The history holds the metrics of each epoch. Training errors are measured on the deformed digits,
# which differ from epoch to epoch. They are harder to read than the test digits.
history = trainer.state.history
epochs = [metrics.epoch for metrics in history]
figure, axes = plt.subplots()
axes.plot(epochs, [m.training_error for m in history], label="training (deformed)")
axes.plot(epochs, [m.test_error for m in history], label="test")
axes.set(xlabel="epoch", ylabel="error (%)", ylim=(0, 30), title="841-100-10 on 1,442 digits")
axes.legend()
plt.show()

# %%
# `evaluate` returns the error and its 95 % interval. Networks take images row by row, in the range
# that they were trained with: here [0, 1].
network = trainer.state.best
inputs = data.as_inputs(config.input_range).test_images.reshape(-1, data.n_inputs)
evaluation = evaluate(network, inputs, data.test_labels, backend)
low, high = evaluation.interval
print(f"test error {evaluation.error_rate:.1f} % ({low:.1f} to {high:.1f} %)")

# %%
# Twelve of the test images, with the network's guess and how sure it is. A wrong guess is red.
outputs = backend.predict(backend.load(network), backend.put(inputs))
shown = np.r_[evaluation.misclassified.indices[:3], :12]
figure, grid = plt.subplots(2, 6, figsize=(7, 2.9))
for axes, i in zip(grid.flat, shown):
    guess = outputs[i].argmax()
    colour = "black" if guess == data.test_labels[i] else "#D55E00"
    axes.imshow(data.test_images[i])
    axes.set_title(f"{guess}   {outputs[i, guess]:.0%}", color=colour)
    axes.axis("off")
plt.show()
