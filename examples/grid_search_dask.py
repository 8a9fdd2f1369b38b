"""A grid search by scikit-learn, whose fits run on a Dask cluster.

The fits go wherever the workers are. This one has two processes on this machine; `Client` with the
address of a scheduler takes another cluster. It takes some seconds on the digits embedded in
scikit-learn. It needs `pip install 'mlpcore[cluster]'`.
"""

from __future__ import annotations

import argparse

import joblib
from distributed import Client
from sklearn.model_selection import GridSearchCV

from mlpcore import OnlineMLPClassifier, dataset


def main(epochs: int = 30, **cluster: object) -> None:
    data = dataset.load(name="digits")
    images = data.train_images.reshape(len(data.train_images), -1)
    mlp = OnlineMLPClassifier((50,), max_iter=epochs, random_state=0)
    grid = {"learning_rate_init": [0.003, 0.01], "activation": ["tanh", "relu"]}
    with Client(n_workers=2, threads_per_worker=1, **cluster) as client:
        print(f"dashboard: {client.dashboard_link}")
        with joblib.parallel_config(backend="dask", scatter=[images, data.train_labels]):
            search = GridSearchCV(mlp, grid, cv=3).fit(images, data.train_labels)
    results = search.cv_results_
    for parameters, score in zip(results["params"], results["mean_test_score"]):
        print(
            f"{parameters['activation']} at {parameters['learning_rate_init']}: {score:.1%} right"
        )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
