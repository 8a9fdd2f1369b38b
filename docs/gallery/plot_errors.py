"""
What it gets wrong
==================

Look at the digits that a network misclassifies, at what it took them for, and at the pairs that it
confuses.
"""

import matplotlib.pyplot as plt
import numpy as np

from mlpcore import DeformationParameters, Evaluation, OnlineMLPClassifier, dataset

data = dataset.load(download=False)  # MNIST where it is found
X, y = data.train_images[:500].reshape(-1, data.n_inputs), data.train_labels[:500]
X_test = data.test_images.reshape(-1, data.n_inputs)

mlp = OnlineMLPClassifier(
    (200,),
    learning_rate_init=0.01,
    max_iter=10,
    random_state=0,
    deformation=DeformationParameters(),
)
mlp.fit(X, y)

# %%
# An `Evaluation` counts errors, their interval, and how often the second guess is right.
evaluation = Evaluation.of(mlp.predict_proba(X_test), data.test_labels)
low, high = evaluation.interval
print(f"{evaluation.errors} of {evaluation.n:,} wrong: {evaluation.error_rate:.2f} %")
print(f"95 % interval: {low:.2f} to {high:.2f} %")
print(f"second guess right: {evaluation.second_right} of {evaluation.errors}")

# %%
# The first errors: the label above, the two best guesses below, as in Figure 1 of the paper.
wrong = evaluation.misclassified
figure, grid = plt.subplots(2, 10, figsize=(7, 2.3))
for axes in grid.flat:
    axes.axis("off")
for axes, i, label, (first, second) in zip(grid.flat, wrong.indices, wrong.labels, wrong.guesses):
    axes.imshow(data.test_images[i])
    axes.set_title(f"{label}", size="small")
    axes.text(0.5, -0.05, f"{first}, {second}", transform=axes.transAxes, ha="center", va="top")
plt.show()

# %%
# The confusion matrix without its diagonal.
errors = np.where(np.eye(evaluation.n_classes, dtype=bool), 0, evaluation.confusion)
figure, axes = plt.subplots(figsize=(4.2, 3.8))
axes.imshow(errors, "Blues")
for (row, column), n in np.ndenumerate(errors):
    if n:
        dark = n > 0.6 * errors.max()
        axes.text(column, row, n, ha="center", va="center", color="white" if dark else "black")
axes.set(xlabel="first guess", ylabel="label", xticks=range(10), yticks=range(10))
axes.set_title(f"Errors of 841-200-10 on {data.name}")
plt.show()
