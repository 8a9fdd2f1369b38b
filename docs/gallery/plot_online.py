"""
On-line or mini-batches?
========================

On-line training updates the weights after every sample, mini-batches after every few. More updates
learn more from an epoch. With scikit-learn they take long; here they do not.
"""

import time
import warnings

import matplotlib.pyplot as plt
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from mlpcore import OnlineMLPClassifier, dataset

data = dataset.load(name="digits")
X, y = (data.train_images.reshape(-1, data.n_inputs) + 1) / 2, data.train_labels
X_test, y_test = (data.test_images.reshape(-1, data.n_inputs) + 1) / 2, data.test_labels
epochs = range(1, 9)

# %%
# The same network by both libraries, an epoch at a time: with ``warm_start`` each ``fit`` goes on.
# scikit-learn warns that one epoch is not enough. That is meant here.
common = {"max_iter": 1, "warm_start": True, "random_state": 0}
models = {"mlpcore, on-line": OnlineMLPClassifier((100,), decay="factor", **common)}
for size, rate in ((32, 0.05), (200, 0.1), (1, 0.001)):
    models[f"scikit-learn, batches of {size}"] = MLPClassifier(
        (100,), solver="sgd", batch_size=size, learning_rate_init=rate, **common
    )
warnings.simplefilter("ignore")

# %%
# The test error and the time after each epoch. So small matrices are multiplied fastest by one
# thread, so scikit-learn gets one.
figure, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(7, 3.8))
for name, model in models.items():
    errors, times, spent = [], [], 0.0
    for _ in epochs:
        started = time.perf_counter()
        with threadpool_limits(1):
            model.fit(X, y)
        spent += time.perf_counter() - started
        errors.append(100 * (1 - model.score(X_test, y_test)))
        times.append(spent)
    left.plot(epochs, errors)
    right.plot(times, errors, label=name)
left.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 20))
left.set_title("841-100-10 on 1,442 digits")
right.set(xlabel="seconds of training", xscale="log")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
