"""A grid search by scikit-learn, over the size of the network and the deformation.

It uses the digits embedded in scikit-learn and takes a few seconds.
"""

from __future__ import annotations

from sklearn.model_selection import GridSearchCV

from mlpcore import DeformationParameters, OnlineMLPClassifier, dataset


def main() -> None:
    data = dataset.load(name="digits")  # 29x29 pixels in [-1, 1]
    images = data.train_images.reshape(len(data.train_images), -1)
    test_images = data.test_images.reshape(len(data.test_images), -1)
    deformation = DeformationParameters(beta=7.5, gamma=7.5)
    mlp = OnlineMLPClassifier(max_iter=25, deformation=deformation, random_state=0)
    grid = {"hidden_layer_sizes": [(50,), (100,)], "deformation__alpha": [0, 12]}
    # Each of the two processes trains with its share of the cores.
    search = GridSearchCV(mlp, grid, cv=3, n_jobs=2).fit(images, data.train_labels)
    results = search.cv_results_
    for parameters, score in zip(results["params"], results["mean_test_score"]):
        hidden, alpha = parameters["hidden_layer_sizes"], parameters["deformation__alpha"]
        print(f"{hidden!s:>8} alpha {alpha:<4} {score:.1%} right")
    score = search.score(test_images, data.test_labels)
    print(f"the best of them, on the test set: {score:.1%} right")


if __name__ == "__main__":
    main()
