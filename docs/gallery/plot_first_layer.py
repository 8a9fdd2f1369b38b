"""
What the first layer looks for
==============================

Each neuron of the first layer has a weight for every pixel, so its weights are a picture. With
deformation they become smooth strokes; without, they stay noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from mlpcore import DeformationParameters, OnlineMLPClassifier, dataset

data = dataset.load(download=False)  # MNIST where it is found
X, y = data.train_images[:3000].reshape(-1, data.n_inputs), data.train_labels[:3000]

# %%
# The same network, with and without deformation.
networks = {}
for name, deformation in {"plain": None, "deformed": DeformationParameters()}.items():
    mlp = OnlineMLPClassifier(
        (64,), activation="relu", loss="cross-entropy", init="he", learning_rate_init=0.005,
        decay="linear", max_iter=30, deformation=deformation, random_state=0,
    )  # fmt: skip
    networks[name] = mlp.fit(X, y)

# %%
# Red weights want ink, blue ones want none. The 24 neurons with the largest weights of each:
figure, grid = plt.subplots(4, 13, figsize=(7, 2.4), gridspec_kw={"width_ratios": [1] * 6 + [0.3] + [1] * 6})
for axes in grid.flat:
    axes.axis("off")
for (name, mlp), columns in zip(networks.items(), (slice(0, 6), slice(7, 13))):
    weights = mlp.network_.weights[0]
    largest = np.argsort(-np.linalg.norm(weights, axis=1))[:24]
    limit = np.quantile(np.abs(weights[largest]), 0.995)
    for axes, neuron in zip(grid[:, columns].flat, largest):
        axes.imshow(weights[neuron].reshape(data.image_shape), "RdBu_r", vmin=-limit, vmax=limit)
    grid[0, columns][0].set_title(f"{name}, 841-64-10 on {data.name}", size="small")
plt.show()
