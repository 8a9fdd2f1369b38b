"""
A grid search
=============

The classifier is a scikit-learn estimator, so a search by cross-validation works as with any
other. Its processes share the cores among them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from mlpcore import DeformationParameters, OnlineMLPClassifier, dataset

data = dataset.load(name="digits")
X, y = data.train_images.reshape(-1, data.n_inputs)[:400], data.train_labels[:400]

mlp = OnlineMLPClassifier(
    activation="relu",
    loss="cross-entropy",
    init="he",
    learning_rate_init=0.005,
    decay="linear",
    max_iter=20,
    random_state=0,
)
sizes = [(25,), (50,), (100,)]
shares = [0, 0.25, 0.5, 1]
deformations = [DeformationParameters(6, 36 * s, 15 * s, 15 * s) if s else None for s in shares]
grid = {"hidden_layer_sizes": sizes, "deformation": deformations}
search = GridSearchCV(mlp, grid, cv=3, n_jobs=2).fit(X, y)
print(f"best: {search.best_params_['hidden_layer_sizes']}, {search.best_score_:.1%} right")

# %%
# The mean error of each pair over three folds.
errors = 100 * (1 - search.cv_results_["mean_test_score"]).reshape(len(shares), len(sizes))
figure, axes = plt.subplots(figsize=(5, 3.4))
axes.imshow(errors, "Blues", aspect="auto")
for (row, column), error in np.ndenumerate(errors):
    dark = error > (errors.min() + errors.max()) / 2
    axes.text(
        column, row, f"{error:.1f} %", ha="center", va="center", color="white" if dark else "black"
    )
axes.set_xticks(range(len(sizes)), [", ".join(map(str, size)) for size in sizes])
axes.set_yticks(range(len(shares)), [f"{share:.0%}" for share in shares])
axes.set(xlabel="hidden neurons", ylabel="strength of deformation")
axes.set_title("Error of 3-fold cross-validation, 400 digits")
plt.show()
