"""
A committee of networks
=======================

Networks from different seeds err on different digits. The mean of their outputs errs less than
most of them do.
"""

import matplotlib.pyplot as plt
import numpy as np

from mlpcore import (
    Committee,
    DeformationParameters,
    OnlineMLPClassifier,
    backends,
    dataset,
    evaluate,
)

data = dataset.load(name="digits")
X, y = data.train_images.reshape(-1, data.n_inputs)[:400], data.train_labels[:400]
X_test = data.test_images.reshape(-1, data.n_inputs)
backend = backends.get("cpu")

networks = []
for seed in range(7):
    mlp = OnlineMLPClassifier(
        (50,), max_iter=30, random_state=seed, deformation=DeformationParameters()
    )
    networks.append(mlp.fit(X, y).network_)

# %%
# A `Committee` averages the outputs of any networks with the same inputs and classes.
single = [evaluate(n, X_test, data.test_labels, backend).error_rate for n in networks]
sizes = range(1, len(networks) + 1)
together = [
    Committee(networks[:size]).evaluate(X_test, data.test_labels, backend).error_rate
    for size in sizes
]

figure, axes = plt.subplots()
axes.plot(sizes, single, "o", color="#808080", label="each network alone")
axes.plot(sizes, together, "o-", label="mean of the outputs so far")
axes.axhline(np.mean(single), color="#808080", linewidth=1, linestyle=":")
axes.set(xlabel="networks", ylabel="test error (%)")
axes.set_ylim(0, 1.15 * max(single))
axes.set_title("841-50-10 on 400 digits")
axes.legend(loc="lower right")
plt.show()
