"""
How strong should a deformation be?
===================================

Too weak, it adds little to the data; too strong, digits become unreadable. Look at strengths first.
Then search by cross-validation, as with any other scikit-learn estimator.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from mlpcore import DeformationParameters, ElasticDeformer, OnlineMLPClassifier, dataset

data = dataset.load(name="digits")
X, y = data.train_images.reshape(-1, data.n_inputs)[:400], data.train_labels[:400]

# %%
# The same digit at six strengths, in three epochs. ``alpha`` is the scale of the elastic
# displacement in pixels; with a ``sigma`` of 6 the root mean square of the displacement is
# alpha / 32.
strengths = [0, 12, 24, 36, 48, 72]
digit = np.flatnonzero(y == 5)[3]
figure, grid = plt.subplots(3, 6, figsize=(7, 3.7))
for column, alpha in zip(grid.T, strengths):
    deformer = ElasticDeformer(alpha=alpha, beta=0, gamma=0, random_state=3)
    deformer.fit(data.train_images)
    column[0].set_title(f"alpha {alpha}")
    for epoch, axes in enumerate(column):
        axes.imshow(deformer.deform(data.train_images[[digit]], epoch=epoch)[0])
        axes.axis("off")
plt.show()

# %%
# A search over ``alpha`` and over the number of hidden neurons. The names of a deformation's
# parameters begin with ``deformation__``. The processes of the search share the cores.
mlp = OnlineMLPClassifier(
    learning_rate_init=0.005,
    max_iter=20,
    random_state=0,
    deformation=DeformationParameters(beta=8, gamma=8),
)
alphas, sizes = [0, 12, 36, 72], [(25,), (75,)]
grid = {"deformation__alpha": alphas, "hidden_layer_sizes": sizes}
search = GridSearchCV(mlp, grid, cv=3, n_jobs=2).fit(X, y)
print("best:", search.best_params_, f"{search.best_score_:.1%} right")

# %%
# The mean error of each pair over three folds.
errors = 100 * (1 - search.cv_results_["mean_test_score"]).reshape(len(alphas), len(sizes))
figure, axes = plt.subplots(figsize=(5, 3.6))
axes.imshow(errors, "Blues", aspect="auto")
for (row, column), error in np.ndenumerate(errors):
    colour = "white" if error > (errors.min() + errors.max()) / 2 else "black"
    axes.text(column, row, f"{error:.1f} %", ha="center", va="center", color=colour)
axes.set_xticks(range(len(sizes)), [", ".join(map(str, size)) for size in sizes])
axes.set_yticks(range(len(alphas)), alphas)
axes.set(xlabel="hidden neurons", ylabel="alpha")
axes.set_title("Error of 3-fold cross-validation, 400 digits")
plt.show()
