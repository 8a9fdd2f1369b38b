"""
What the first layer looks for
==============================

Each neuron of the first layer has a weight for every pixel, so its weights are a picture. With
deformation they become smoother: a stroke counts wherever it may be.
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
        (64,), learning_rate_init=0.005, max_iter=30, deformation=deformation, random_state=0
    )
    networks[name] = mlp.fit(X, y)

# %%
# Red weights want ink, blue ones want none. The 24 neurons with the largest weights of each:
figure = plt.figure(figsize=(7, 2.6))
for half, (name, mlp) in zip(figure.subfigures(1, 2), networks.items()):
    half.suptitle(f"{name}, 841-64-10 on {data.name}", size="small")
    weights = mlp.network_.weights[0]
    largest = np.argsort(-np.linalg.norm(weights, axis=1))[:24]
    limit = np.quantile(np.abs(weights[largest]), 0.995)
    for axes, neuron in zip(half.subplots(4, 6).flat, largest):
        axes.imshow(weights[neuron].reshape(data.image_shape), "RdBu_r", vmin=-limit, vmax=limit)
        axes.axis("off")
plt.show()
